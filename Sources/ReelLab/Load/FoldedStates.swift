import ReelCore
import ReelNet

/// The folded states of streams, as nodes answer them over HTTP.
final class FoldedStates {
    private let gateways: LoadGateways
    private let http: HTTPClient
    private var turn = 0
    /// As they were soon after an epoch began, and who waits to be told.
    private var begun: [StreamName: Fold] = [:]
    private var waiting: [Beginning: [(Fold?) -> Void]] = [:]

    private struct Beginning: Hashable {
        let stream: StreamName
        let epoch: Epoch
    }

    /// A state is as large as what lives in its stream.
    private static let bytesMax = 1 << 30
    /// So many streams are asked about at the end of a run.
    private static let keptMax = 64

    init(_ gateways: LoadGateways, on loop: EventLoop) {
        self.gateways = gateways
        http = HTTPClient(on: loop, maxIdle: 16)
    }

    /// Loads a stream's state; nil if no node answers one for ten seconds.
    func load(_ stream: StreamName, then: @escaping ((epoch: Epoch, seq: Seq)?) -> Void) {
        get("/v1/streams/\(stream)/snapshot", untilMs: Clock.nowMs() + 10_000) { body in
            then(body.flatMap(Self.position))
        }
    }

    /// What a stream's log knew of its sites as the epoch began, or soon after, asked for once for all clients; nil if
    /// no node knows for ten seconds.
    func beginning(of stream: StreamName, in epoch: Epoch, then: @escaping (Fold?) -> Void) {
        if let fold = begun[stream], fold.epoch == epoch { return then(fold) }
        let beginning = Beginning(stream: stream, epoch: epoch)
        waiting[beginning, default: []].append(then)
        guard waiting[beginning]?.count == 1 else { return }
        get(
            "/v1/streams/\(stream)/snapshot",
            untilMs: Clock.nowMs() + 10_000,
            where: { Self.position($0)?.epoch == epoch }
        ) { [self] body in
            let fold = body.flatMap { $0.withUnsafeBytes { try? Fold(snapshot: Bytes($0)) } }
            begun[stream] = fold
            for then in waiting.removeValue(forKey: beginning) ?? [] { then(fold) }
        }
    }

    /// Keeps the states of the streams, and of each a delta, as evidence. Ends at the first that no node has, which it
    /// says.
    func keep(_ streams: [StreamName], in folder: HistoryFolder?, then: @escaping (_ missing: StreamName?) -> Void) {
        guard let stream = streams.first, let folder else { return then(nil) }
        let rest = Array(streams.dropFirst().prefix(Self.keptMax - 1))
        get("/v1/streams/\(stream)/snapshot", untilMs: Clock.nowMs() + 2_000) { [self] body in
            guard let body, let position = Self.position(body) else { return then(stream) }
            folder.keep("\(stream).snapshot.jsonl", body)
            guard position.seq > 0 else { return keep(rest, in: folder, then: then) }
            let target = "/v1/streams/\(stream)/delta?after=\(position.seq / 2)&epoch=\(position.epoch)"
            get(target, untilMs: 0) { [self] body in
                if let body { folder.keep("\(stream)-delta.snapshot.jsonl", body) }
                keep(rest, in: folder, then: then)
            }
        }
    }

    /// The first answer that is one, of one node after the other; once more where the time is over.
    private func get(
        _ target: String,
        untilMs: Int64,
        where fits: @escaping ([UInt8]) -> Bool = { _ in true },
        then: @escaping ([UInt8]?) -> Void
    ) {
        turn += 1
        guard var request = gateways.request(target, turn: turn) else { return then(nil) }
        request.timeout = .seconds(10)
        http.fetch(request, maxBody: Self.bytesMax) { [self] result in
            if case .success(let response) = result, response.status == 200, fits(response.body) {
                return then(response.body)
            }
            guard Clock.nowMs() < untilMs else { return then(nil) }
            http.loop.timer(after: .milliseconds(50)) { [self] in
                get(target, untilMs: untilMs, where: fits, then: then)
            }
        }
    }

    /// Epoch and seq of the first line of a snapshot.
    private static func position(_ body: [UInt8]) -> (epoch: Epoch, seq: Seq)? {
        let line = Array(body.prefix { $0 != 0x0A })
        var (epoch, seq): (Epoch?, Seq?)
        line.withUnsafeBytes { line in
            var reader = JSONReader(line, levels: 4, shape: .badFrame)
            try? reader.object { (reader, key) throws(ReelError) in
                switch key.raw {
                case "epoch": epoch = Epoch(try reader.string())
                case "seq": seq = try reader.integer(from: -1)
                default: try reader.skip()
                }
            }
        }
        guard let epoch, let seq else { return nil }
        return (epoch, seq)
    }
}
