import ReelCore
import ReelNet
import ReelNode

/// Asks single nodes how they are: short deadlines, and an answer of any status is an answer.
struct NodeProbe: Sendable {
    private let loop: EventLoop
    private let client: LoopBound<HTTPClient>

    /// Who does not answer within this is as good as dead.
    private static let timeout = Duration.seconds(3)
    /// The largest answer in bytes; a state is read by `state` as it comes. The page of metrics and a page of events
    /// are shorter.
    private static let answerBytesMax = 16 << 20
    /// The timeout of a whole answer. A node that sends little at a time is never silent.
    private static let answerTimeout = Duration.seconds(30)

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
        let request = Self.request(target, of: node)
        return await withCheckedContinuation { continuation in
            let isTaken = loop.execute { [client] in
                var timer: LoopTimer?
                var isLate = false
                let call = client.value.fetch(request, maxBody: Self.answerBytesMax) { result in
                    timer?.cancel()
                    timer = nil
                    let late = NetError(.timedOut, "the answer was not whole within \(Self.answerTimeout)")
                    continuation.resume(returning: isLate ? .failure(late) : result)
                }
                timer = client.loop.timer(after: Self.answerTimeout) {
                    isLate = true
                    call.cancel()
                }
            }
            if !isTaken { continuation.resume(returning: .failure(Self.stopped)) }
        }
    }

    /// Reads a snapshot or a delta as it comes.
    func state(
        _ target: String,
        of node: NodeAddress,
        into reader: SnapshotReader
    ) async -> Result<Fold, StateDownload.Failure> {
        let request = Self.request(target, of: node)
        return await withCheckedContinuation { continuation in
            let isTaken = loop.execute { [client] in
                StateDownload.begin(request, client.value, into: reader) { continuation.resume(returning: $0) }
            }
            if !isTaken { continuation.resume(returning: .failure(.silent(Self.stopped))) }
        }
    }

    private static let stopped = NetError(.closed, "the event loop has stopped")

    private static func request(_ target: String, of node: NodeAddress) -> HTTPClientRequest {
        var request = HTTPClientRequest("GET", host: node.host, port: node.port, target: target)
        request.timeout = timeout
        request.tls = node.tls
        if let token = node.token { request.headers.add("authorization", "Bearer \(token)") }
        return request
    }

    /// Why there is no standing: nobody answers, or a node that refuses to.
    struct NoSignOfLife: Error {
        var message: String
        /// What it refuses with; nil: it does not.
        var refusal: ErrorCode?
    }

    /// What the node says of itself.
    func standing(of node: NodeAddress) async throws(NoSignOfLife) -> NodeStanding {
        let response: HTTPResponse
        switch await get("/readyz", of: node) {
        case .success(let answer): response = answer
        case .failure(let error): throw NoSignOfLife(message: error.message)
        }
        do throws(ReelError) {
            return try NodeStanding(response.body)
        } catch {
            let refusal = Refusal(response)
            if refusal.code != nil { throw NoSignOfLife(message: refusal.message, refusal: refusal.code) }
            throw NoSignOfLife(
                message: "status \(response.status) and no node's answer to /readyz: \(error.message)"
            )
        }
    }
}

/// Where a node stands, as its `/readyz` says it.
struct NodeStanding: Equatable {
    /// A partition, over all roles of the node.
    struct Position: Equatable {
        /// The last seq of the role that is furthest behind.
        var seq = Seq.none
        /// The last seq of the role that is furthest ahead.
        var head = Seq.none
        /// The last seq that there was when the node started.
        var goal = Seq.none
        /// Why a role does not process it, the gravest reason; nil: all do.
        var stop: Stop?
    }

    /// Why a role does not process a partition.
    struct Stop: Equatable {
        /// `gateway` or `snapshot`.
        var role: String
        /// A code of docs/reference/errors.md.
        var code: String
        var reason: String

        /// True if an operator must act: waiting does not help.
        var isLasting: Bool {
            ErrorCode(rawValue: code).map { PartitionHealth.Stop($0, reason).isLasting } ?? false
        }
    }

    /// One role of the node.
    struct Role: Equatable {
        var name = ""
        var isReady = false
        /// How the log does for it, in a word.
        var log = ""
    }

    /// It has read to its goals, keeps up, has not stopped anywhere, and does not leave.
    var isReady = false
    var isLeaving = false
    /// How the log does, in a word: the worst of all roles.
    var log = ""
    /// What more it says of that.
    var detail = ""
    /// What an operator must see to though the node serves; empty: nothing.
    var notice = ""
    /// Why it is not ready; empty: it is.
    var reason = ""
    var epoch = ""
    /// Empty: a node of an older build, which does not say it.
    var deployment = ""
    /// What the node's clock showed, milliseconds since 1970; nil: a node of an older build, which does not say it.
    var clockMs: Int64?
    var roles: [Role] = []
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
                case "reason": reason = try reader.string()
                case "log": log = try reader.string()
                case "detail": detail = try reader.string()
                case "notice": notice = try reader.string()
                case "epoch": epoch = try reader.string()
                case "deployment": deployment = try reader.string()
                case "clock": clockMs = try reader.integer()
                case "roles":
                    try reader.array { (reader) throws(ReelError) in try addRole(&reader) }
                default: try reader.skip()
                }
            }
            try reader.end()
        }
        guard let ready else { throw ReelError(.badFrame, "found no member \"ready\"") }
        isReady = ready
        if !ready, reason.isEmpty { reason = "it says no reason" }
    }

    private mutating func addRole(_ reader: inout JSONReader) throws(ReelError) {
        var role = Role()
        var places: [(seq: Seq, goal: Seq, code: String?, reason: String)] = []
        try reader.object { (reader, key) throws(ReelError) in
            switch key.raw {
            case "role": role.name = try reader.string()
            case "ready": role.isReady = try reader.boolean()
            case "log": role.log = try reader.string()
            case "partitions":
                try reader.array { (reader) throws(ReelError) in
                    var place = (seq: Seq.none, goal: Seq.none, code: String?.none, reason: "")
                    try reader.object { (reader, key) throws(ReelError) in
                        switch key.raw {
                        case "seq": place.seq = try reader.integer(from: -1)
                        case "goal": place.goal = try reader.integer(from: -1)
                        case "code": place.code = try reader.string()
                        case "stopped": place.reason = try reader.string()
                        default: try reader.skip()
                        }
                    }
                    places.append(place)
                }
            default: try reader.skip()
            }
        }
        roles.append(role)
        for (partition, place) in places.enumerated() {
            let stop = place.code.map { Stop(role: role.name, code: $0, reason: place.reason) }
            guard partitions.indices.contains(partition) else {
                partitions.append(Position(seq: place.seq, head: place.seq, goal: place.goal, stop: stop))
                continue
            }
            let known = partitions[partition]
            partitions[partition] = Position(
                seq: min(known.seq, place.seq),
                head: max(known.head, place.seq),
                goal: max(known.goal, place.goal),
                stop: [known.stop, stop].compactMap(\.self).first(where: \.isLasting) ?? known.stop ?? stop
            )
        }
    }

    /// Why it does not read on in a partition, where it is not the log that hands nothing out; nil: no reason is known.
    func reasonToStop(in partition: Int) -> String? {
        guard partitions.indices.contains(partition), let stop = partitions[partition].stop else {
            return log == "ended" ? "the epoch has ended" : nil
        }
        return ["log_unavailable", "forbidden"].contains(stop.code) ? nil : stop.reason
    }
}
