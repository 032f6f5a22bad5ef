import ReelCore
import ReelNet
import ReelNode

/// A client for requests to single nodes, with short timeouts. An answer with any status is a result, not an error.
struct NodeProbe: Sendable {
    private let loop: EventLoop
    private let client: LoopBound<HTTPClient>

    /// The inactivity timeout of a request.
    private static let timeout = Duration.seconds(3)
    /// The largest answer of `get` in bytes. The page of metrics and a page of events are shorter.
    private static let answerBytesMax = 16 << 20
    /// The timeout of a whole answer, because a node that sends slowly never exceeds the inactivity timeout.
    private static let answerTimeout = Duration.seconds(30)

    /// Starts the event loop. The caller must call `close`.
    init() async throws {
        let loop = try EventLoop()
        self.loop = loop
        client = try await loop.run { LoopBound(HTTPClient(on: loop), on: loop) }
    }

    /// Ends open requests and the event loop.
    func close() {
        loop.stop()
    }

    /// Sends a GET request and returns the answer with any status, or the error if there is none.
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

    /// Reads a snapshot or a delta line by line.
    ///
    /// - Parameters:
    ///   - target: the path and query.
    ///   - node: the node.
    ///   - reader: the reader that folds the lines.
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

    /// The error if a node does not answer, or refuses the request.
    struct NoSignOfLife: Error {
        var message: String
        /// The code of the refusal; nil if the node does not answer.
        var refusal: ErrorCode?
    }

    /// Returns the node's own report of its state, from `/readyz`.
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
                message: "status \(response.status), and not an answer of a node to /readyz: \(error.message)"
            )
        }
    }
}

/// The state of a node, as its `/readyz` reports it.
struct NodeStanding: Equatable {
    /// The position in a partition, over all roles of the node.
    struct Position: Equatable {
        /// The last seq of the role that is furthest behind.
        var seq = Seq.none
        /// The last seq of the role that is furthest ahead.
        var head = Seq.none
        /// The last seq of the partition when the node started.
        var goal = Seq.none
        /// The worst reason why a role does not process the partition; nil if all roles process it.
        var stop: Stop?
    }

    /// The reason why a role does not process a partition.
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
        /// The state of the log for this role, in a word.
        var log = ""
    }

    /// True if the node has reached its goals, keeps up, has no stopped partition, and is not in a drain.
    var isReady = false
    /// True if the node is in a drain.
    var isLeaving = false
    /// The state of the log in a word: the worst of all roles.
    var log = ""
    /// Details of the state of the log; empty if there are none.
    var detail = ""
    /// A problem that an operator must solve although the node serves; empty if there is none.
    var notice = ""
    /// The reason why the node is not ready; empty if it is ready.
    var reason = ""
    var epoch = ""
    /// The deployment; empty for a node of an older build, which does not report it.
    var deployment = ""
    /// The node's clock, in milliseconds since 1970; nil for a node of an older build, which does not report it.
    var clockMs: Int64?
    var roles: [Role] = []
    /// The positions, by the number of the partition.
    var partitions: [Position] = []

    init(isReady: Bool, isLeaving: Bool = false, log: String = "ok", epoch: String, partitions: [Position]) {
        self.isReady = isReady
        self.isLeaving = isLeaving
        self.log = log
        self.epoch = epoch
        self.partitions = partitions
    }

    /// Parses the body of an answer to `/readyz`.
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
        if !ready, reason.isEmpty { reason = "it gives no reason" }
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

    /// Returns the reason why the node does not read a partition, if the log is not the cause; nil if none is known.
    func reasonToStop(in partition: Int) -> String? {
        guard partitions.indices.contains(partition), let stop = partitions[partition].stop else {
            return log == "ended" ? "the epoch has ended" : nil
        }
        return ["log_unavailable", "forbidden"].contains(stop.code) ? nil : stop.reason
    }
}
