import ReelBase
import ReelCore
import ReelNet
import Synchronization

@testable import ReelClient

/// A transport with nodes in memory: one partition, one log, several node names, and faults on demand.
///
/// A test can switch nodes off. Everything runs on one loop, which tests reach through `on`.
final class FakeNetwork: SyncTransport, @unchecked Sendable {
    let loop: EventLoop
    var log: [[UInt8]] = []
    /// The stream of each record. The seqs of other streams are nil.
    var streams: [StreamName?] = []
    var epoch = Epoch(1)
    var number = 0
    /// The number of partitions that `welcome` gives. The log has one partition.
    var partitions = 1
    /// The deployment that nodes name; nil: nodes of an older build.
    var deployment: Deployment? = Deployment(1)
    /// The log before this one. Lagging nodes are still at it.
    var former: FormerLog?
    var lagging: Set<String> = []
    /// The node of each `hello`, in order.
    var greeted: [String] = []
    /// True for each `hello` that said that the client accepts frames `nodes`.
    var takesNodes: [Bool] = []
    var down: Set<String> = []
    var hasSnapshots = true
    /// A snapshot node that starts again: the seq up to which it has folded, and the step by which this seq grows at
    /// each answer. Nil: the node has folded everything.
    var folds: (to: Seq, step: Seq)?
    var connections: [FakeConnection] = []
    var random: SeededGenerator
    /// The percentage of publishes after which the connection breaks, before or after the log has them.
    var breaksPercent = 0
    /// All requests by HTTP: node and target.
    var requests: [String] = []
    var fetches: [[ClosedRange<Seq>]] = []
    var dropsFetches = false
    /// The first seq that can be read.
    var first: Seq = 0
    /// The error of every refused subscription; nil: subscriptions are accepted.
    var refusal: ReelError?
    var subscribes: [ClientFrame.Subscribe] = []
    /// The numbers of streams of the frames that subscribed several.
    var batches: [Int] = []
    /// The streams that such a frame may have, as `welcome` has it; nil: a node of an older build.
    var subscribeStreams: Int? = 1_000
    /// Nodes answer requests for digests.
    var hasDigests = true
    /// Streams that clients may not subscribe to.
    var forbidden: Set<StreamName> = []
    /// The subscription limit of a connection in `welcome`. `subscriptionsTaken` is the limit that applies, if it
    /// differs.
    var subscriptionsMax = 100
    var subscriptionsTaken: Int?
    /// The largest frame in bytes that a node accepts, as `welcome` says.
    var frameBytes = 1 << 20
    /// A member of the HTTP answers with events, and the number that replaces its true value.
    var forged: (member: String, number: Int64)?
    /// For each rogue node, a function that handles a client's frame. It returns false if the node handles the frame
    /// honestly.
    var lies: [String: @Sendable (FakeConnection, ClientFrame) -> Bool] = [:]
    /// For each rogue node, a function that gets the honest HTTP answer and returns another one; nil: the honest one.
    var answers: [String: @Sendable (_ target: String, _ body: [UInt8]) -> (Int, [UInt8])?] = [:]
    /// The number of bytes after which each next snapshot or delta is cut. The last element is used first.
    var cuts: [Int] = []
    /// Called with the receiver of a cut answer; nil: the connection is reset.
    var cutAnswer: ((@escaping @Sendable (TransportResponse) -> Void) -> Void)?
    /// The milliseconds by which this clock is ahead of the loop's clock.
    var aheadMs: Int64 = 0
    /// The milliseconds by which the wall clock is ahead of the monotonic clock.
    var wallAheadMs: Int64 = 0
    /// True if no connection gets appended events.
    var isSilent = false
    /// False if no node knows the outcomes of events.
    var hasOutcomes = true
    /// True if answers to pings wait for ever behind other data.
    var isSlow = false
    /// Records that are appended to the log immediately before the events of the next publish.
    var late: [[UInt8]] = []
    /// True if publishes do not arrive and break the connection.
    var losesPublishes = false
    /// True if no publish gets an answer.
    var dropsAcks = false
    /// The factor by which all pauses are shorter.
    var haste: Int64 = 1
    /// True if requests by HTTP get no answer before `answerHeld`.
    var holdsAnswers = false
    var heldAnswers: [@Sendable () -> Void] = []
    /// Nodes that answer no request by HTTP.
    var hung: Set<String> = []
    /// True if only nodes with a connected client answer requests by HTTP.
    var othersHang = false
    /// Lengths in milliseconds of pauses that end only by `fireDeadlines`.
    var heldPauses: Set<Int64> = []
    var deadlines: [(request: FakeRequest, body: @Sendable () -> Void)] = []
    /// The error in the nack of every publish; nil: publishes are accepted.
    var nack: ReelError?
    /// Tokens that do not allow to publish.
    var readers: Set<String> = []
    /// Tokens that do not allow to read.
    var strangers: Set<String> = []
    /// The tokens that nodes with keys accept; nil: nodes have no keys.
    var tokens: Set<String>?
    /// The lifetime of a token in seconds, as `welcome` says.
    var tokenS: Int?
    /// The nodes that `welcome` names.
    var named: [String] = []
    /// The number of events that `author` has appended.
    var authored: Op = 0
    /// The number of connections that have opened so far.
    var opened = 0
    /// The token in each `hello` and `renew`, in order.
    var said: [String?] = []

    init(seed: UInt64 = 1) throws {
        loop = try EventLoop()
        random = SeededGenerator(seed: seed)
    }

    deinit {
        loop.stop()
        loop.leave()
    }

    var executor: any SerialExecutor { loop }
    var nowMs: Int64 { Int64(clamping: loop.now) + aheadMs }
    var wallMs: Int64 { 1_800_000_000_000 + nowMs + wallAheadMs }
    var head: Seq { Seq(log.count) - 1 }

    /// Runs the body on the loop of this network.
    func on<T: Sendable>(_ body: @escaping @Sendable (FakeNetwork) -> T) async throws -> T {
        try await loop.run { body(self) }
    }

    func client(
        nodes: [String] = ["a"],
        store: SyncClient.Store = .memory,
        gaps: SyncClient.GapSource = .connection,
        token: String? = nil,
        renewToken: SyncClient.TokenSource? = nil,
        seed: UInt64 = 5
    ) throws -> SyncClient {
        try SyncClient(
            nodes: nodes,
            store: store,
            transport: self,
            gaps: gaps,
            token: token,
            renewToken: renewToken,
            seed: seed
        )
    }

    /// Returns another device, connected with this node. It has inserted `count` objects into the stream `s`: `m/0`,
    /// `m/1`, …
    func author(of count: Int, on node: String) async throws -> (SyncClient, SyncStream) {
        let client = try client(nodes: [node], seed: 6)
        let stream = try await client.open("s", from: .beginning)
        for id in 0..<count { try await stream.publish(.insert("m", id: "\(id)")).outcome() }
        return (client, stream)
    }

    // MARK: Transport

    /// Accepts every node name.
    func check(_ node: String) {}

    func connect(to node: String, _ receive: @escaping @Sendable (TransportEvent) -> Void) -> any TransportConnection {
        let connection = FakeConnection(self, node, receive)
        loop.execute { [self] in
            if down.contains(node) { return connection.end("refused") }
            connections.append(connection)
            opened += 1
            connection.receive?(.opened)
        }
        return connection
    }

    func get(
        from node: String,
        _ target: String,
        token: String?,
        _ receive: @escaping @Sendable (TransportResponse) -> Void
    ) -> any TransportHandle {
        send(node, target, [], receive)
    }

    func post(
        to node: String,
        _ target: String,
        json body: [UInt8],
        token: String?,
        _ receive: @escaping @Sendable (TransportResponse) -> Void
    ) -> any TransportHandle {
        send(node, target, body, receive)
    }

    private func send(
        _ node: String,
        _ target: String,
        _ question: [UInt8],
        _ receive: @escaping @Sendable (TransportResponse) -> Void
    ) -> any TransportHandle {
        let request = FakeRequest()
        loop.execute { [self] in
            if hung.contains(node) || othersHang && !connections.contains(where: { $0.node == node }) { return }
            if holdsAnswers { return heldAnswers.append { self.answer(request, node, target, question, receive) } }
            answer(request, node, target, question, receive)
        }
        return request
    }

    private func answer(
        _ request: FakeRequest,
        _ node: String,
        _ target: String,
        _ question: [UInt8],
        _ receive: @escaping @Sendable (TransportResponse) -> Void
    ) {
        guard !request.isCancelled else { return }
        requests.append("\(node) \(target)")
        if down.contains(node) { return receive(.failed("refused")) }
        var (status, body) = asSeen(by: node) { target == "/v1/digests" ? digests(question) : answer(target) }
        if let lie = answers[node]?(target, body) { (status, body) = lie }
        receive(.head(status: status, length: Int64(body.count)))
        let cut = target.contains("/snapshot") || target.contains("/delta") ? cuts.popLast() : nil
        // The answer may be cut at any piece.
        for piece in stride(from: 0, to: body.count, by: 1_000) where !request.isCancelled {
            if let cut, piece >= cut { return cutAnswer.map { $0(receive) } ?? receive(.failed("reset")) }
            receive(.body(Array(body[piece..<min(piece + 1_000, body.count)])))
        }
        if !request.isCancelled { receive(.end) }
    }

    func answerHeld() {
        holdsAnswers = false
        for answer in heldAnswers { answer() }
        heldAnswers = []
    }

    func after(_ ms: Int64, _ body: @escaping @Sendable () -> Void) -> any TransportHandle {
        let request = FakeRequest()
        if heldPauses.contains(ms) {
            deadlines.append((request, body))
            return request
        }
        request.timer = loop.timer(after: .milliseconds(ms / haste)) { [loop] in
            Self.pass(Self.grace, on: loop) { if !request.isCancelled { body() } }
        }
        return request
    }

    /// The rounds of the loop for which a pause continues after its time. Input that was delayed while the loop's
    /// thread stood still arrives first. No answer needs as many rounds.
    private static let grace = 16

    private static func pass(_ rounds: Int, on loop: EventLoop, _ body: @escaping @Sendable () -> Void) {
        loop.execute { if rounds > 1 { Self.pass(rounds - 1, on: loop, body) } else { body() } }
    }

    /// Ends the oldest `count` held pauses. Cancelled pauses do nothing.
    func fireDeadlines(_ count: Int) {
        let due = deadlines.prefix(count)
        deadlines.removeFirst(due.count)
        for (request, body) in due where !request.isCancelled { body() }
    }

    func execute(_ body: @escaping @Sendable () -> Void) {
        if loop.isCurrent { body() } else { loop.execute(body) }
    }

    func onBatchEnd(_ body: @escaping @Sendable () -> Void) { loop.beforeFlush(body) }

    // MARK: Nodes

    /// Appends records of another stream to the log.
    func skip(_ count: Int = 1) {
        for _ in 0..<count { append(nil, []) }
    }

    func append(_ stream: StreamName?, _ value: [UInt8]) {
        log.append(value)
        streams.append(stream)
    }

    /// Appends an event of another device to the stream `s`, as a gateway would.
    func author(_ event: SyncEvent) {
        append(StreamName("s")!, event.encoded(base: head, author: .init(site: Site(high: 1, low: 1), op: authored)))
        authored += 1
    }

    /// Kills a node: its connections break, and no client gets an answer.
    func kill(_ node: String) {
        down.insert(node)
        for connection in connections where connection.node == node { connection.end("reset") }
    }

    func events(_ stream: StreamName, _ from: Seq, _ to: Seq) -> ServerFrame.Events {
        let to = min(to, head)
        let events = from > to ? [] : (from...to).filter { streams[Int($0)] == stream || isRetirement($0) }
        return ServerFrame.Events(
            stream: stream,
            from: from,
            to: max(to, from - 1),
            events: events.map { DeliveredEvent(seq: $0, value: log[Int($0)]) }
        )
    }

    /// True if the record is a barrier that retires sites. Such a barrier is delivered with every stream of the
    /// partition.
    private func isRetirement(_ seq: Seq) -> Bool {
        guard streams[Int(seq)] == nil else { return false }
        return log[Int(seq)].withUnsafeBytes { if case .known(.retire) = Barrier.read($0) { true } else { false } }
    }

    /// Retires, as an operator, all sites of a stream without an event after a seq.
    func retire(before seq: Seq, _ stream: StreamName) {
        append(nil, Barrier.retire(before: seq, stream: stream).value)
        pushAll()
    }

    func fold(_ stream: StreamName, upTo last: Seq? = nil) -> Fold {
        let last = last ?? head
        var partition = PartitionFold(partition: 0, of: 1, epoch: epoch)
        for (seq, value) in log.enumerated() where seq <= last {
            value.withUnsafeBytes { value in
                let key = streams[seq]?.key ?? Array(StreamName.barrierKey.utf8)
                _ = key.withUnsafeBytes { partition.read(key: $0, value: value, seq: Seq(seq)) }
            }
        }
        var fold = partition.streams[stream] ?? Fold(stream: stream, partition: 0, epoch: epoch)
        fold.advance(to: last)
        return fold
    }

    /// Sends this frame from every node to its clients.
    func sayToAll(_ body: ServerFrame.Body) {
        for connection in connections { connection.say(body) }
    }

    func pushAll() {
        for connection in connections { connection.push() }
    }

    /// Pushes the events up to this seq, even if the network is silent.
    func push(upTo last: Seq) {
        for connection in connections { connection.push(upTo: last) }
    }

    func answer(_ target: String) -> (Int, [UInt8]) {
        let parts = target.split(separator: "?")
        let path = parts[0].split(separator: "/").map(String.init)
        guard let stream = StreamName(path[2]) else { return (404, []) }
        var query: [String: String] = [:]
        for pair in parts.count > 1 ? parts[1].split(separator: "&") : [] {
            let sides = pair.split(separator: "=")
            query[String(sides[0])] = sides.count > 1 ? String(sides[1]) : ""
        }
        let after = query["after"].flatMap { Seq($0) } ?? -1
        var body: [UInt8] = []
        switch path[3] {
        case "events":
            let limit = query["limit"].flatMap { Seq($0) } ?? 1_000
            if query["outcome"] != nil, !hasOutcomes { return (503, Array(#"{"code":"node_behind"}"#.utf8)) }
            if query["outcome"] != nil, after + 1 < first { return (410, Array(#"{"code":"truncated"}"#.utf8)) }
            var events = events(stream, after + 1, after + limit)
            if query["outcome"] != nil, let site = query["site"] {
                events.events = withOutcomes(events.events, of: site, stream)
            }
            body += "{\"epoch\":\"\(epoch)\",\"events\":[".utf8
            for (index, event) in events.events.enumerated() {
                if index > 0 { body.append(UInt8(ascii: ",")) }
                event.value.withUnsafeBytes { DeliveredEvent.write(seq: event.seq, value: $0, to: &body) }
            }
            body += "],\"from\":\(events.from),\"head\":\(head),\"partition\":0,".utf8
            body += "\"stream\":\"\(stream)\",\"to\":\(events.to)}".utf8
            if let (member, number) = forged {
                let text = String(decoding: body, as: UTF8.self)
                let pattern = try? Regex("\"\(member)\":-?[0-9]+")
                if let pattern { body = Array(text.replacing(pattern, with: "\"\(member)\":\(number)").utf8) }
            }
        default:
            guard hasSnapshots else { return (503, Array(#"{"code":"node_behind"}"#.utf8)) }
            if let (to, step) = folds { folds = (to + step, step) }
            var fold = fold(stream, upTo: min(head, folds?.to ?? head))
            if path[3] == "delta", query["epoch"] != "\(epoch)" {
                return (409, Array(#"{"code":"epoch_changed"}"#.utf8))
            }
            let cut = query["model"].flatMap { model in query["id"].flatMap { SnapshotCut(model: model, id: $0) } }
            let made = try? cut.map { try fold.rest(after: after, beyond: $0) } ?? fold.snapshot(after: after)
            guard path[3] == "snapshot" || cut != nil || after >= fold.horizon, var writer = made else {
                return (410, Array(#"{"code":"truncated"}"#.utf8))
            }
            writer.writeAll(to: &body)
        }
        return (200, body)
    }
}
