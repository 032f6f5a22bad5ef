import ReelBase
import ReelCore
import ReelNet

/// The folded states of streams, as nodes return them over HTTP, and the requests to nodes.
final class FoldedStates {
    private let gateways: LoadGateways
    private let http: HTTPClient
    private var turn = 0
    /// The states soon after an epoch began, and the callers that wait for them.
    private var begun: [StreamName: Fold] = [:]
    private var waiting: [Beginning: [(Fold?) -> Void]] = [:]

    private struct Beginning: Hashable {
        let stream: StreamName
        let epoch: Epoch
    }

    /// The largest answer in bytes. A state is as large as the present objects of its stream.
    private static let bytesMax = 1 << 30
    /// The maximum number of streams that are checked at the end of a run.
    static let streamsMax = 64

    init(_ gateways: LoadGateways, on loop: EventLoop) {
        self.gateways = gateways
        http = HTTPClient(on: loop, maxIdle: 16)
    }

    /// Loads a stream's state. Calls `then` with nil if no node returns a state for ten seconds.
    func load(_ stream: StreamName, then: @escaping ((epoch: Epoch, seq: Seq)?) -> Void) {
        get(
            "/v1/streams/\(stream)/snapshot",
            of: gateways.urls,
            untilMs: MonotonicClock.nowMs() + 10_000,
            read: Self.position,
            then: then
        )
    }

    /// Loads the state of a stream as the epoch began, or soon after, to learn what its log knew of sites. One request
    /// serves all clients. Calls `then` with nil if no node returns the state for ten seconds.
    func beginning(of stream: StreamName, in epoch: Epoch, then: @escaping (Fold?) -> Void) {
        if let fold = begun[stream], fold.epoch == epoch { return then(fold) }
        let beginning = Beginning(stream: stream, epoch: epoch)
        waiting[beginning, default: []].append(then)
        guard waiting[beginning]?.count == 1 else { return }
        get("/v1/streams/\(stream)/snapshot", of: gateways.urls, untilMs: MonotonicClock.nowMs() + 10_000) { body in
            Self.position(body)?.epoch == epoch ? body : nil
        } then: { [self] (body: [UInt8]?) in
            let fold = body.flatMap { $0.withUnsafeBytes { try? Fold(snapshot: Bytes($0)) } }
            begun[stream] = fold
            for then in waiting.removeValue(forKey: beginning) ?? [] { then(fold) }
        }
    }

    /// Keeps the states of the streams, and a delta of each, as evidence. Ends at the first stream whose state no node
    /// has, and passes its name to `then`.
    func keep(_ streams: [StreamName], in folder: HistoryFolder, then: @escaping (_ missing: StreamName?) -> Void) {
        keep(streams.prefix(Self.streamsMax), in: folder, then: then)
    }

    private func keep(
        _ streams: ArraySlice<StreamName>,
        in folder: HistoryFolder,
        then: @escaping (_ missing: StreamName?) -> Void
    ) {
        guard let stream = streams.first else { return then(nil) }
        let target = "/v1/streams/\(stream)"
        get("\(target)/snapshot", of: gateways.urls, untilMs: MonotonicClock.nowMs() + 2_000) { body in
            Self.position(body).map { Kept(epoch: $0.epoch, seq: $0.seq, body: body) }
        } then: { [self] (state: Kept?) in
            guard let state else { return then(stream) }
            folder.keep("\(stream).snapshot.jsonl", state.body)
            guard state.seq > 0 else { return keep(streams.dropFirst(), in: folder, then: then) }
            let delta = "\(target)/delta?after=\(state.seq / 2)&epoch=\(state.epoch)"
            get(delta, of: gateways.urls, untilMs: 0, read: { $0 }) { [self] (body: [UInt8]?) in
                if let body { folder.keep("\(stream)-delta.snapshot.jsonl", body) }
                keep(streams.dropFirst(), in: folder, then: then)
            }
        }
    }

    private struct Kept {
        let epoch: Epoch
        let seq: Seq
        let body: [UInt8]
    }

    // MARK: Asking

    /// Sends a GET to these nodes in turn until `read` accepts an answer. Calls `then` with nil after `untilMs`.
    func get<Answer>(
        _ target: String,
        of urls: [String],
        untilMs: Int64,
        read: @escaping ([UInt8]) -> Answer?,
        then: @escaping (Answer?) -> Void
    ) {
        turn += 1
        guard var request = gateways.request(target, of: urls[turn % urls.count]) else { return then(nil) }
        request.timeout = .seconds(10)
        http.fetch(request, maxBody: Self.bytesMax) { [self] result in
            if case .success(let response) = result, response.status == 200, let answer = read(response.body) {
                return then(answer)
            }
            guard MonotonicClock.nowMs() < untilMs else { return then(nil) }
            http.loop.timer(after: .milliseconds(50)) { [self] in
                get(target, of: urls, untilMs: untilMs, read: read, then: then)
            }
        }
    }

    /// Returns epoch and seq of the first line of a snapshot.
    static func position(_ body: [UInt8]) -> (epoch: Epoch, seq: Seq)? {
        var (epoch, seq): (Epoch?, Seq?)
        members(body.prefix { $0 != 0x0A }) { (reader, key) throws(ReelError) in
            switch key.raw {
            case "epoch": epoch = Epoch(try reader.string())
            case "seq": seq = try reader.integer(from: -1)
            default: try reader.skip()
            }
        }
        guard let epoch, let seq else { return nil }
        return (epoch, seq)
    }

    /// Calls `member` for the members of an object. Text that is no object has none.
    static func members(
        _ object: ArraySlice<UInt8>,
        _ member: (inout JSONReader, JSONText) throws(ReelError) -> Void
    ) {
        object.withUnsafeBytes { object in
            var reader = JSONReader(object, levels: ClientFrame.levels, shape: .badFrame)
            try? reader.object(member)
        }
    }
}
