import ReelCore
import ReelNet

/// Asks single nodes how they are: short deadlines, and an answer of any status is an answer.
struct NodeProbe: Sendable {
    private let loop: EventLoop
    private let client: LoopBound<HTTPClient>

    /// Who does not answer within this is as good as dead.
    private static let timeout = Duration.seconds(3)
    /// A snapshot of a very large stream is longer.
    private static let answerMax = 4 << 30

    /// A probe, until `close`.
    init() async throws {
        let loop = try EventLoop()
        self.loop = loop
        client = try await loop.run { LoopBound(HTTPClient(on: loop), on: loop) }
    }

    /// Ends what it still asks.
    func close() {
        loop.stop()
    }

    /// The answer to a GET; an error says why there is none.
    func get(_ target: String, of node: NodeAddress) async -> Result<HTTPResponse, NetError> {
        var request = HTTPClientRequest("GET", host: node.host, port: node.port, target: target)
        request.timeout = Self.timeout
        request.tls = node.tls
        if let token = node.token { request.headers.add("authorization", "Bearer \(token)") }
        do {
            return .success(try await client.fetch(request, maxBody: Self.answerMax))
        } catch let error as NetError {
            return .failure(error)
        } catch {
            return .failure(NetError(.closed, "\(error)"))
        }
    }

    /// Why there is no standing: nobody answers, or a node that refuses to.
    struct Silence: Error {
        var message: String
        /// What it refuses with; nil: it does not.
        var refusal: ErrorCode?
    }

    /// What the node says of itself.
    func standing(of node: NodeAddress) async throws(Silence) -> NodeStanding {
        let response: HTTPResponse
        switch await get("/readyz", of: node) {
        case .success(let answer): response = answer
        case .failure(let error): throw Silence(message: error.message)
        }
        do throws(ReelError) {
            return try NodeStanding(response.body)
        } catch {
            let refusal = Refusal(response)
            if refusal.code != nil { throw Silence(message: refusal.message, refusal: refusal.code) }
            throw Silence(
                message: "status \(response.status) and no node's answer to /readyz: \(error.message)"
            )
        }
    }
}

/// Where a node stands, as its `/readyz` says it.
struct NodeStanding: Equatable {
    /// A partition: the last seq read, and the last one that there was when the node started.
    struct Position: Equatable {
        var seq = Seq.none
        var goal = Seq.none
        /// Why it is not read any further; nil: it is.
        var stopped: String?
    }

    /// It has read to its goals, keeps up, and does not leave.
    var isReady = false
    var isLeaving = false
    /// The other gateways are too far ahead.
    var isBehind = false
    /// How the log does, in a word.
    var log = ""
    /// What more it says of that.
    var detail = ""
    var epoch = ""
    /// Empty: a node of an older build, which does not say it.
    var deployment = ""
    /// By partition.
    var partitions: [Position] = []

    init(isReady: Bool, isLeaving: Bool = false, log: String = "ok", epoch: String, partitions: [Position]) {
        self.isReady = isReady
        self.isLeaving = isLeaving
        self.log = log
        self.epoch = epoch
        self.partitions = partitions
    }

    /// Reads the body of the answer.
    init(_ body: [UInt8]) throws(ReelError) {
        var ready: Bool?
        try body.withUnsafeBufferPointer { (body) throws(ReelError) in
            var reader = JSONReader(Bytes(body), levels: ClientFrame.levels, shape: .badFrame)
            try reader.object { (reader, key) throws(ReelError) in
                switch key.raw {
                case "ready": ready = try reader.boolean()
                case "leaving": isLeaving = try reader.boolean()
                case "behind": isBehind = try reader.boolean()
                case "log": log = try reader.string()
                case "detail": detail = try reader.string()
                case "epoch": epoch = try reader.string()
                case "deployment": deployment = try reader.string()
                case "partitions":
                    try reader.array { (reader) throws(ReelError) in partitions.append(try Position(&reader)) }
                default: try reader.skip()
                }
            }
            try reader.end()
        }
        guard let ready else { throw ReelError(.badFrame, "found no member \"ready\"") }
        isReady = ready
    }

    /// Why it does not read on in a partition, where it is not the log that hands nothing out; nil: no reason is known.
    func reasonToStop(in partition: Int) -> String? {
        if partitions.indices.contains(partition), let reason = partitions[partition].stopped { return reason }
        return switch log {
        case "diverged": "its log is not the one that it has read before"
        case "ahead_of_log": "its log holds less than it has read before"
        case "ended": "the epoch has ended"
        // A snapshot node says it of each partition, one behind the other.
        case "ok", "truncated": detail.contains("partition \(partition): ") ? detail : nil
        default: nil
        }
    }

    /// Why it is not ready, in words.
    var reason: String {
        if isLeaving { return "it is leaving" }
        let behind = partitions.enumerated().filter { $0.element.seq < $0.element.goal }.map {
            "partition \($0.offset) at \($0.element.seq) of \($0.element.goal)"
        }
        guard !behind.isEmpty else {
            return isBehind ? "the other gateways are too far ahead of it" : "it says no reason"
        }
        return "it still reads what was there at its start: "
            + behind.prefix(4).joined(separator: ", ") + (behind.count > 4 ? " and \(behind.count - 4) more" : "")
    }
}

extension NodeStanding.Position {
    fileprivate init(_ reader: inout JSONReader) throws(ReelError) {
        self.init()
        try reader.object { (reader, key) throws(ReelError) in
            switch key.raw {
            case "seq": seq = try reader.integer(from: -1)
            case "goal": goal = try reader.integer(from: -1)
            case "stopped": stopped = try reader.string()
            default: try reader.skip()
            }
        }
    }
}
