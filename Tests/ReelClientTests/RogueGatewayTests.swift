import ReelCore
import TestSupport
import Testing

@testable import ClientTestSupport
@testable import ReelClient

/// A hostile gateway beside an honest one. The device reports the problem and the node, keeps its queue, and continues
/// with the honest node.
@Suite(.timeLimit(.minutes(5))) struct RogueGatewayTests {
    private static let welcome =
        #"{"t":"welcome","node":"a","epoch":"0000000000000001","number":0,"deployment":"0000000000000001","#
        + #""partitions":1,"limits":{"frame":1048576,"event":262144,"batch":50,"subscriptions":100,"fetch":100000},"#
        + #""ping_s":20,"nodes":[]}"#
    private static let subscribed =
        #"{"t":"subscribed","stream":"s","epoch":"0000000000000001","partition":0,"first":0,"head":0,"after":-1}"#

    private static func welcome(_ part: String, _ lie: String) -> String { welcome.replacing(part, with: lie) }

    /// Returns a network with the rogue node `a` and the honest node `b`. The rogue node answers a `hello` and a
    /// subscribe with these texts.
    private func network(hello: [String], subscribe: [String] = []) throws -> FakeNetwork {
        let network = try FakeNetwork()
        network.haste = 100
        network.lies["a"] = { connection, frame in
            switch frame.body {
            case .hello: for text in hello { connection.receive?(.text(Array(text.utf8))) }
            case .subscribe: for text in subscribe { connection.receive?(.text(Array(text.utf8))) }
            default: break
            }
            return true
        }
        return network
    }

    /// Publishes while only the rogue node is reachable, and waits until the device has left it. Then lets the device
    /// reach the honest node. Returns the reason for which the device left the rogue node.
    @discardableResult
    private func meet(_ network: FakeNetwork, from start: StartPosition = .beginning) async throws -> String {
        try await network.on { $0.down = ["b"] }
        let client = try network.client(nodes: ["a", "b"])
        var notices = await client.notices().makeAsyncIterator()
        let stream = try await client.open("s", from: start)
        let publication = try await stream.publish(.insert("m", id: "own", ["n": 1]))
        var reason = ""
        while let notice = await notices.next() {
            guard case .disconnected("a", let found) = notice else { continue }
            reason = found
            break
        }
        #expect(await stream.pendingCount == 1, "the queue is kept")
        #expect(try stream.object("m", id: "own") != nil)
        try await network.on { $0.down = [] }
        guard case .applied = try await publication.outcome() else {
            Issue.record("the event was not applied")
            return reason
        }
        #expect(await client.connectedNode == "b")
        #expect(try await network.on { $0.log.count } == 1)
        await client.close()
        return reason
    }

    @Test(
        "a device leaves a node that sends an invalid welcome",
        arguments: [
            welcome(#""partitions":1"#, #""partitions":0"#),
            welcome(#""partitions":1"#, #""partitions":9007199254740992"#),
            welcome(#""partitions":1"#, #""partitions":"1""#), welcome(#""frame":1048576"#, #""frame":0"#),
            welcome(#""frame":1048576"#, #""frame":1025"#), welcome(#""event":262144"#, #""event":1"#),
            welcome(#""batch":50"#, #""batch":0"#), welcome(#""fetch":100000"#, #""fetch":0"#),
            welcome(#""limits":{"#, #""x":{"#), welcome(#""number":0"#, #""number":9007199254740991"#),
            welcome(#""number":0"#, #""number":-1"#), welcome(#""epoch":"0000000000000001""#, #""epoch":"1""#),
            welcome(#""deployment":"0000000000000001""#, #""deployment":7"#), welcome(#""nodes":[]"#, #""nodes":[5]"#),
            welcome(#""t":"welcome""#, #""t":"wellcome""#), "", "{", "[]", "null", #"{"t":"welcome"}"#,
        ]
    )
    func invalidWelcome(text: String) async throws {
        let reason = try await meet(try network(hello: [text]))
        #expect(!reason.isEmpty)
    }

    @Test(
        "a device leaves a node that sends a contradictory frame, and takes nothing from the frame",
        arguments: [
            [subscribed.replacing(#""partition":0"#, with: #""partition":1"#)],
            [subscribed.replacing("0000000000000001", with: "0000000000000002")],
            [subscribed.replacing(#""head":0"#, with: #""head":"0""#)],
            [subscribed, #"{"t":"events","stream":"s","from":0,"to":0,"events":[{"seq":0,"x":1},{"seq":0,"x":2}]}"#],
            [subscribed, #"{"t":"events","stream":"s","from":0,"to":2,"events":[{"seq":2,"x":1},{"seq":1,"x":2}]}"#],
            [subscribed, #"{"t":"events","stream":"s","from":0,"to":0,"events":[{"seq":1,"x":1}]}"#],
            [subscribed, #"{"t":"events","stream":"s","from":5,"to":3,"events":[]}"#],
            [subscribed, #"{"t":"events","stream":"s","from":0,"to":9007199254740992,"events":[]}"#],
            [subscribed, #"{"t":"events","stream":"s","from":0,"to":0,"events":[7]}"#],
            [subscribed, #"{"t":"upto","partition":0,"seq":"x"}"#], [subscribed, #"{"t":"ack","stream":"s"}"#],
            [subscribed, #"{"t":"goaway"}"#], [subscribed, "\u{1b}[2J"],
        ]
    )
    func contradiction(texts: [String]) async throws {
        try await meet(try network(hello: [Self.welcome], subscribe: texts))
    }

    @Test("a device leaves a node that repeatedly sends its clients away at once")
    func goaways() async throws {
        let goaway = #"{"t":"goaway","after_ms":0,"nodes":["a"]}"#
        try await meet(try network(hello: [Self.welcome, goaway]))
    }

    @Test(
        "a stream that a rogue node has stopped continues at an honest node",
        arguments: [
            #"{"t":"events","stream":"s","from":0,"to":0,"events":[{"seq":0,"later":1,"type":"barrier"}]}"#,
            #"{"t":"error","code":"bad_stream","message":"found no name","stream":"s","ref":"s"}"#,
            #"{"t":"error","code":"forbidden","message":"not for you","stream":"s"}"#,
            #"{"t":"error","code":"invented","message":"","stream":"s"}"#,
        ]
    )
    func continuesAtHonestNode(lie: String) async throws {
        let network = try network(hello: [Self.welcome], subscribe: [Self.subscribed, lie])
        try await network.on { $0.down = ["b"] }
        let client = try network.client(nodes: ["a", "b"])
        let stream = try await client.open("s", from: .beginning)
        let publication = try await stream.publish(.insert("m", id: "own"))
        try await eventually("the device says what it found") {
            client.status.problems.contains { $0.stream == "s" }
        }
        try await network.on { network in
            network.down = ["a"]
            for connection in network.connections { connection.end("reset") }
        }
        guard case .applied = try await publication.outcome() else { throw Wrong() }
        try await eventually("no problem is left") { client.status.problems.isEmpty }
        await client.close()
    }

    @Test("an own event with other content stays in the queue, and an honest node exposes the lie")
    func falsified() async throws {
        let network = try network(hello: [Self.welcome])
        network.lies["a"] = { connection, frame in
            switch frame.body {
            case .hello: connection.receive?(.text(Array(Self.welcome.utf8)))
            case .subscribe:
                let text = Self.subscribed.replacing(#""first":0,"head":0"#, with: #""first":-1,"head":-1"#)
                connection.receive?(.text(Array(text.utf8)))
            case .publish(let publish):
                var text = String(decoding: publish.events[0], as: UTF8.self)
                guard let base = text.firstRange(of: #""base""#) else { return true }
                text.insert(contentsOf: #""at":7,"#, at: base.lowerBound)
                text = text.replacing(#""n":1"#, with: #""n":2"#)
                let event = #"{"seq":0,"# + text.dropFirst()
                let frame = #"{"t":"events","stream":"s","from":0,"to":0,"events":[\#(event)]}"#
                connection.receive?(.text(Array(frame.utf8)))
            default: break
            }
            return true
        }
        try await network.on { $0.down = ["b"] }
        let client = try network.client(nodes: ["a", "b"])
        var notices = await client.notices().makeAsyncIterator()
        let stream = try await client.open("s", from: .beginning)
        try await stream.publish(.insert("m", id: "own", ["n": 1]))
        while let notice = await notices.next() {
            if case .newSite("s", _, _) = notice { break }
        }
        #expect(await stream.pendingCount == 1, "the queue is kept")
        // A gateway compares the device's last event with its log.
        try await network.on { network in
            (network.down, network.refusal) = (["a"], ReelError(.aheadOfLog, "the log ends at -1"))
            for connection in network.connections { connection.end("reset") }
        }
        try await eventually("the device says what the honest node has found") {
            client.status.problems.contains { $0.stream == "s" && $0.code == .aheadOfLog }
        }
        #expect(await stream.pendingCount == 1)
        var lines: [String] = []
        for try await line in client.queueLines() { lines.append(line) }
        #expect(lines.count == 1 && lines[0].contains(#""n":1"#), "the app can take it elsewhere: \(lines)")
        await client.close()
    }

    @Test("an absurd head or pause has an effect only until the connection ends", arguments: [true, false])
    func absurdHead(saysHead: Bool) async throws {
        let lie =
            saysHead
            ? Self.subscribed.replacing(#""head":0"#, with: #""head":9007199254740991"#)
            : #"{"t":"error","code":"overloaded","message":"","stream":"s","retry_ms":9007199254740991,"ref":"s"}"#
        let network = try network(hello: [Self.welcome], subscribe: [lie])
        try await network.on { $0.down = ["b"] }
        let client = try network.client(nodes: ["a", "b"])
        let stream = try await client.open("s", from: .snapshot)
        let publication = try await stream.publish(.insert("m", id: "own"))
        try await eventually("the lie was told") { await client.connectedNode == "a" }
        try await network.on { network in
            network.down = ["a"]
            for connection in network.connections { connection.end("reset") }
        }
        guard case .applied = try await publication.outcome() else { throw Wrong() }
        try await eventually("it has all") {
            let (gaps, seq) = (await stream.gaps(), await stream.seq)
            return gaps.isEmpty && seq == 0
        }
        await client.close()
    }

    @Test("a nack with an absurd pause delays the queue only on its connection")
    func absurdPause() async throws {
        let network = try FakeNetwork()
        network.haste = 100
        network.nack = ReelError(.overloaded, "later", retryMs: largestInteger)
        network.down = ["b"]
        let client = try network.client(nodes: ["a", "b"])
        let stream = try await client.open("s", from: .beginning)
        let publication = try await stream.publish(.insert("m", id: "own"))
        try await eventually("it was nacked") { client.status.problems.contains { $0.code == .overloaded } }
        try await network.on { network in
            (network.nack, network.down) = (nil, ["a"])
            for connection in network.connections { connection.end("reset") }
        }
        guard case .applied = try await publication.outcome() else { throw Wrong() }
        await client.close()
    }

    @Test(
        "a device with a wrong partition count from a rogue node reads the state again at an honest node",
        arguments: [false, true]
    )
    func wrongPartitionCount(isReopened: Bool) async throws {
        let partition = StreamName("s")!.partition(of: 3)
        let network = try network(
            hello: [Self.welcome(#""partitions":1"#, #""partitions":3"#)],
            subscribe: [
                Self.subscribed.replacing(#""partition":0"#, with: #""partition":\#(partition)"#)
                    .replacing(#""head":0"#, with: #""head":1"#),
                #"{"t":"events","stream":"s","from":0,"to":1,"events":[]}"#,
            ]
        )
        try await network.on { network in
            network.author(.insert("m", id: "0"))
            network.author(.insert("m", id: "1"))
            network.hung = ["a", "b"]
            network.down = ["b"]
        }
        let client = try network.client(nodes: ["a", "b"])
        var stream = try await client.open("s", from: .beginning)
        try await eventually("the rogue has shown a log without events") { await stream.seq == 1 }
        #expect(try stream.objects("m").isEmpty)
        if isReopened {
            await stream.close()
            try await client.open("other")
        }
        try await network.on { network in
            (network.down, network.hung) = (["a"], [])
            for connection in network.connections { connection.end("reset") }
        }
        if isReopened {
            try await eventually { await client.connectedNode == "b" }
            stream = try await client.open("s", from: .beginning)
        }
        try await eventually("all is read") { [stream] in try stream.objects("m").count == 2 }
        try await stream.publish(.insert("m", id: "own")).outcome()
        #expect(try stream.objects("m").count == 3)
        await client.close()
    }

    @Test("adopt of the own deployment removes a log number that no log has")
    func numberOfNoLog() async throws {
        let network = try FakeNetwork()
        network.haste = 100
        network.number = 999_999
        let client = try network.client()
        let stream = try await client.open("s", from: .beginning)
        try await stream.publish(.insert("m", id: "0")).outcome()
        try await network.on { network in
            network.number = 0
            for connection in network.connections { connection.end("reset") }
        }
        let publication = try await stream.publish(.insert("m", id: "1"))
        try await eventually("the honest node is behind") {
            client.status.problems.contains { $0.code == .nodeBehind && $0.message.contains("999999") }
        }
        try await client.adopt(deployment: "\(Deployment(1))")
        guard case .applied = try await publication.outcome() else { throw Wrong() }
        #expect(try stream.objects("m").count == 2)
        await client.close()
    }

    @Test(
        "a device does not show a state with false lines as complete, and requests it from another node",
        arguments: ["digest", "count", "order", "text", "epoch", "cut", "endless"]
    )
    func falseState(lie: String) async throws {
        let network = try FakeNetwork()
        network.haste = 100
        try await network.on { network in
            for id in 0..<3 { network.author(.insert("m", id: "\(id)")) }
            network.answers["a"] = { target, body in
                guard target.contains("/snapshot") || target.contains("/delta") else { return nil }
                var text = String(decoding: body, as: UTF8.self)
                switch lie {
                case "digest": text = text.replacing(/"digest":"./) { _ in #""digest":"z"# }
                case "count": text = text.replacing(/"count":[0-9]+/) { _ in #""count":9"# }
                case "order":
                    var lines = text.split(separator: "\n")
                    lines.swapAt(2, 3)
                    text = lines.joined(separator: "\n") + "\n"
                case "text": text = text.replacing(#""m","1""#, with: #""m","7""#)
                case "epoch": text = text.replacing("0000000000000001", with: "0000000000000009")
                case "cut": text = String(text.prefix(text.count / 2))
                default: return (200, [UInt8](repeating: 0x7b, count: 100_000))
                }
                return (200, Array(text.utf8))
            }
        }
        let client = try network.client(nodes: ["a", "b"], seed: 9)
        try await network.on { $0.down = ["b"] }
        let stream = try await client.open("s")
        try await eventually("the rogue was asked") {
            try await network.on { $0.requests.contains { $0.contains("snapshot") } }
        }
        try await network.on { $0.down = [] }
        // Until then the objects of a false state may be shown, marked as incomplete.
        try await eventually("the objects are there") {
            try stream.read { try $0.isComplete && $0.objects("m").count == 3 }
        }
        for id in ["0", "1", "2"] { #expect(try stream.object("m", id: id) != nil) }
        try await stream.publish(.insert("m", id: "own")).outcome()
        await client.close()
    }

    @Test("a device gives up an endless answer: a page of events, or a line of a state")
    func endless() throws {
        let page = EventsPage()
        let piece = [UInt8](repeating: 0x20, count: 1 << 20)
        _ = try page.received(.head(status: 200, length: nil), StreamName("s")!)
        let error = #expect(throws: ReelError.self) {
            for _ in 0..<1_000 { _ = try page.received(.body(piece), StreamName("s")!) }
        }
        #expect(error?.code == .tooLarge)
        var lines = LineSplitter()
        let long = #expect(throws: ReelError.self) {
            for _ in 0..<1_000 { try piece.lend { (bytes) throws(ReelError) in try lines.add(bytes) { _ in } } }
        }
        #expect(long?.code == .tooLarge)
    }

    @Test("a device does not remember invalid node addresses")
    func longAddresses() {
        var failover = Failover(nodes: ["http://a:1"], seed: 1)
        failover.learn([String(repeating: "x", count: 1_000_000), "http://b:1"])
        #expect(failover.nodes == ["http://a:1", "http://b:1"])
    }

    private struct Wrong: Error {}
}
