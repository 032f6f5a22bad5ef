import ReelCore
import ReelNet
import Synchronization

@testable import ReelClient

/// A transport whose nodes live in memory: one partition, one log, several node names that can be switched off, and
/// faults on demand. Everything happens on one loop; tests speak to it through `on`.
final class FakeNetwork: Transport, @unchecked Sendable {
    let loop: EventLoop
    var log: [[UInt8]] = []
    /// Seqs of other streams are empty here.
    var streams: [StreamName?] = []
    var epoch = Epoch(1)
    var number = 0
    /// How many partitions `welcome` says that the log has; it has one.
    var partitions = 1
    /// What nodes say they belong to; nil: nodes of an older build.
    var deployment: Deployment? = Deployment(1)
    /// The log before this one, which some nodes have not left yet.
    var former: FormerLog?
    var lagging: Set<String> = []
    /// The nodes that a client said hello to, one after the other.
    var greeted: [String] = []
    /// Whether each of them said that it takes frames `nodes`.
    var takesNodes: [Bool] = []
    var down: Set<String> = []
    var hasSnapshots = true
    /// How far the snapshot node has folded, which begins anew, and how much further it is at each answer; nil: it has
    /// folded all.
    var folds: (to: Seq, step: Seq)?
    var connections: [FakeConnection] = []
    var random: SeededGenerator
    /// Percent of publishes after which the connection breaks, before or after the log has them.
    var breaksPercent = 0
    /// Every request that was made: node and target.
    var requests: [String] = []
    var fetches: [[ClosedRange<Seq>]] = []
    var dropsFetches = false
    /// The first seq that can be read.
    var first: Seq = 0
    /// What a subscription is refused with.
    var refusal: ReelError?
    var subscribes: [ClientFrame.Subscribe] = []
    /// Streams that may not be subscribed.
    var forbidden: Set<StreamName> = []
    /// The subscriptions of a connection, as `welcome` has it; and how many are taken, where that is another number.
    var subscriptionsMax = 100
    var subscriptionsTaken: Int?
    /// The largest frame that a node takes, as `welcome` has it.
    var frameBytes = 1 << 20
    /// A member of the answers by HTTP with events, and the number that stands in it whatever is so.
    var forged: (member: String, number: Int64)?
    /// What a node does with a frame in place of an honest one; false: it is honest about that.
    var lies: [String: @Sendable (FakeConnection, ClientFrame) -> Bool] = [:]
    /// What a node answers by HTTP in place of an honest one, which would give this body; nil: the same.
    var answers: [String: @Sendable (_ target: String, _ body: [UInt8]) -> (Int, [UInt8])?] = [:]
    /// The numbers of bytes after which the next states that are asked for are cut, the last one first.
    var cuts: [Int] = []
    /// Called with the receiver of an answer that is cut; nil: the connection is reset.
    var cutAnswer: ((@escaping @Sendable (TransportResponse) -> Void) -> Void)?
    /// How far the clock is ahead of the loop's.
    var aheadMs: Int64 = 0
    /// No connection gets what is appended.
    var isSilent = false
    /// What stands in the log before the events of the next publish, and in no answer before.
    var late: [[UInt8]] = []
    /// A publish does not arrive: the connection breaks.
    var losesPublishes = false
    /// No publish gets an answer.
    var dropsAcks = false
    /// So many times as fast as said all pauses pass.
    var haste: Int64 = 1
    /// Requests by HTTP get no answer before `answerHeld`.
    var holdsAnswers = false
    var heldAnswers: [@Sendable () -> Void] = []
    /// Nodes that answer no request by HTTP.
    var hung: Set<String> = []
    /// Only the nodes that somebody is connected with answer requests by HTTP.
    var othersHang = false
    /// Pauses of so many milliseconds do not pass by themselves but by `fireDeadlines`.
    var heldPauses: Set<Int64> = []
    var deadlines: [(request: FakeRequest, body: @Sendable () -> Void)] = []
    /// What every publish is nacked with.
    var nack: ReelError?
    /// Tokens that do not allow to publish.
    var readers: Set<String> = []
    /// Tokens that do not allow to read.
    var strangers: Set<String> = []
    /// What nodes with keys take; nil: they have none.
    var tokens: Set<String>?
    /// So long a token holds, as `welcome` says.
    var tokenS: Int?
    /// The nodes that `welcome` names.
    var named: [String] = []
    /// How many events `author` has appended.
    var authored: Op = 0
    /// Connections that have opened so far.
    var opened = 0
    /// What clients said in `hello` and `renew`.
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
    var head: Seq { Seq(log.count) - 1 }

    /// Runs the body where everything of this network happens.
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

    /// Another device, connected with this node, that has made so many objects in the stream `s`: `m/0`, `m/1`, …
    func author(of count: Int, on node: String) async throws -> (SyncClient, SyncStream) {
        let client = try client(nodes: [node], seed: 6)
        let stream = try await client.open("s", from: .all)
        for id in 0..<count { try await stream.publish(.insert("m", "\(id)")).fate() }
        return (client, stream)
    }

    // MARK: Transport

    /// Nodes have any names here.
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
    ) -> any TransportRequest {
        let request = FakeRequest()
        loop.execute { [self] in
            if hung.contains(node) || othersHang && !connections.contains(where: { $0.node == node }) { return }
            if holdsAnswers { return heldAnswers.append { self.answer(request, node, target, receive) } }
            answer(request, node, target, receive)
        }
        return request
    }

    private func answer(
        _ request: FakeRequest,
        _ node: String,
        _ target: String,
        _ receive: @escaping @Sendable (TransportResponse) -> Void
    ) {
        guard !request.isCancelled else { return }
        requests.append("\(node) \(target)")
        if down.contains(node) { return receive(.failed("refused")) }
        var (status, body) = asSeen(by: node) { answer(target) }
        if let lie = answers[node]?(target, body) { (status, body) = lie }
        receive(.status(status))
        let cut = target.contains("/snapshot") || target.contains("/delta") ? cuts.popLast() : nil
        // Cut anywhere.
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

    func after(_ ms: Int64, _ body: @escaping @Sendable () -> Void) -> any TransportRequest {
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

    /// So many rounds of the loop a pause lasts beyond its time: what was on its way when the loop's thread stood still
    /// comes before it. No answer takes as many.
    private static let grace = 16

    private static func pass(_ rounds: Int, on loop: EventLoop, _ body: @escaping @Sendable () -> Void) {
        loop.execute { if rounds > 1 { Self.pass(rounds - 1, on: loop, body) } else { body() } }
    }

    /// Lets so many of the held pauses pass, the oldest first; those that were called off do nothing.
    func fireDeadlines(_ count: Int) {
        let due = deadlines.prefix(count)
        deadlines.removeFirst(due.count)
        for (request, body) in due where !request.isCancelled { body() }
    }

    func execute(_ body: @escaping @Sendable () -> Void) {
        if loop.isCurrent { body() } else { loop.execute(body) }
    }

    func atTurnEnd(_ body: @escaping @Sendable () -> Void) { loop.beforeFlush(body) }

    // MARK: Nodes

    /// Puts a record of another stream, or of nobody, into the log.
    func skip(_ count: Int = 1) {
        for _ in 0..<count { append(nil, []) }
    }

    func append(_ stream: StreamName?, _ value: [UInt8]) {
        log.append(value)
        streams.append(stream)
    }

    /// Appends an event of another device to the stream `s`, as a gateway would.
    func author(_ event: Event) {
        append(StreamName("s")!, event.encoded(base: head, author: .init(site: Site(high: 1, low: 1), op: authored)))
        authored += 1
    }

    /// Kills a node: its connections break and nobody gets an answer.
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

    /// A barrier that retires sites is delivered with every stream of the partition.
    private func isRetirement(_ seq: Seq) -> Bool {
        guard streams[Int(seq)] == nil else { return false }
        return log[Int(seq)].withUnsafeBytes { if case .known(.retire) = Barrier.read($0) { true } else { false } }
    }

    /// An operator retires all sites of a stream with no event behind a seq.
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

    /// Every node says this to its clients.
    func sayToAll(_ body: ServerFrame.Body) {
        for connection in connections { connection.say(body) }
    }

    func pushAll() {
        for connection in connections { connection.push() }
    }

    /// Pushes the events up to this seq, also while the network is silent.
    func push(upTo last: Seq) {
        for connection in connections { connection.push(upTo: last) }
    }

    private func answer(_ target: String) -> (Int, [UInt8]) {
        let parts = target.split(separator: "?")
        let path = parts[0].split(separator: "/").map(String.init)
        guard let stream = StreamName(path[2]) else { return (404, []) }
        var query: [String: String] = [:]
        for pair in parts.count > 1 ? parts[1].split(separator: "&") : [] {
            let sides = pair.split(separator: "=")
            query[String(sides[0])] = String(sides[1])
        }
        let after = query["after"].flatMap { Seq($0) } ?? -1
        var body: [UInt8] = []
        switch path[3] {
        case "events":
            let limit = query["limit"].flatMap { Seq($0) } ?? 1_000
            let events = events(stream, after + 1, after + limit)
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
