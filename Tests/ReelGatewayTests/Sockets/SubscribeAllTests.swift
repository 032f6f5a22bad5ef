import EventLogConformance
import ReelCore
import ReelLog
import ReelNode
import TestSupport
import Testing

@testable import ReelGateway

/// Tests frames that subscribe several streams.
@Suite(.timeLimit(.minutes(15))) struct SubscribeAllTests {
    private let todo = StreamName("todo")!
    private let site = Site(high: 1, low: 1)
    private let streams = (0..<1_000).map { StreamName("s\($0)")! }

    private func frame(_ streams: [StreamName], after seq: Seq = .none, epoch: Epoch? = nil) -> ClientFrame.Body {
        .subscribeAll(streams.map { .init(stream: $0, position: .after(seq), epoch: epoch) })
    }

    @Test("one frame subscribes a thousand streams, which then get their events") func subscribesAll() async throws {
        try await LiveGateway.with { live in
            let (socket, writer) = (try await live.connect(), try await live.connect())
            socket.send(frame(streams), ref: "7")
            var names: [StreamName] = []
            for _ in streams {
                let answer = try await socket.next { if case .subscribed = $0.body { true } else { false } }
                #expect(answer.ref == Array("7".utf8))
                if case .subscribed(let subscribed) = answer.body { names.append(subscribed.stream) }
            }
            #expect(names == streams)
            #expect(try await live.metric("reel_gateway_subscriptions") == 1_000)
            writer.send(.publish(.init(stream: streams[999], events: [Sent.insert(site, 0, "a")])))
            let events = try await socket.events(of: streams[999], partition: 0, after: -1, through: 0)
            #expect(events.map(\.seq) == [0])
        }
    }

    @Test("welcome names the limit of streams in a frame") func welcomeNamesLimit() async throws {
        try await LiveGateway.with { live in
            let socket = try await live.open()
            socket.send(#"{"t":"hello","client":"test/1"}"#)
            let frame = try await socket.next { if case .welcome = $0.body { true } else { false } }
            guard case .welcome(let welcome) = frame.body else { return }
            #expect(welcome.limits.subscribe == 1_000)
        }
    }

    @Test("each stream that is refused gets its own error, and the others are subscribed") func refusesEach()
        async throws
    {
        let keys = try KeyFile()
        try await LiveGateway.with(nil, { $0.node.tokens = keys.gate }) { live in
            let socket = try await live.open()
            let token = try keys.token(read: "s*", publish: "*")
            socket.send(.hello(.init(client: "test/1", token: token)))
            _ = try await socket.next { if case .welcome = $0.body { true } else { false } }
            let other = ClientFrame.Subscribe(stream: streams[3], position: .after(4), epoch: Epoch(7))
            let wanted = [streams[0], todo, streams[1]].map {
                ClientFrame.Subscribe(stream: $0, position: .after(-1))
            }
            socket.send(.subscribeAll(wanted + [other]), ref: "1")
            #expect(try await socket.nextSubscribed().stream == streams[0])
            #expect(try await socket.nextSubscribed().stream == streams[1])
            let refused = [try await socket.nextError(), try await socket.nextError()]
            #expect(refused.map(\.stream) == [todo, streams[3]])
            #expect(refused.map(\.error.code) == [.forbidden, .epochChanged])
        }
    }

    @Test("streams beyond the limits of the connection are refused one by one") func connectionLimit() async throws {
        try await LiveGateway.with(nil, { $0.subscriptions = 3 }) { live in
            let socket = try await live.connect()
            socket.send(frame(Array(streams[..<5])))
            for stream in streams[..<3] { #expect(try await socket.nextSubscribed().stream == stream) }
            for stream in streams[3..<5] {
                let failure = try await socket.nextError()
                #expect((failure.stream, failure.error.code) == (stream, .limit))
            }
            // More streams than errors that a connection may have.
            socket.send(frame(Array(streams[5..<305])))
            for _ in 5..<305 { #expect(try await socket.nextError().error.code == .limit) }
            socket.send(.unsubscribe(streams[0]))
            socket.send(frame([streams[7]]))
            #expect(try await socket.nextSubscribed().stream == streams[7])
        }
    }

    /// Frames that are refused as a whole, each with the code and the index of the error.
    static let bad: [(String, ErrorCode, Int?)] = [
        ("[]", .badFrame, nil), ("{}", .badFrame, nil), (#"[{"stream":"a","after":-1},7]"#, .badFrame, 1),
        (#"[{"stream":"a","after":-1},{"stream":"a","after":-1}]"#, .badFrame, 1),
        (#"[{"stream":"a","after":-1},{"stream":"~b","after":-1}]"#, .badStream, 1),
        (#"[{"stream":"a","after":-1},{"stream":"b"}]"#, .badFrame, 1),
        (#"[{"stream":"a","after":3}]"#, .badFrame, 0),
        (#"[{"stream":"a","after":-1,"last":[1]}]"#, .badFrame, 0),
        ("[" + (0...1_000).map { #"{"stream":"a\#($0)","after":-1}"# }.joined(separator: ",") + "]", .limit, nil),
    ]

    @Test("a frame that cannot be read is refused as a whole", arguments: bad)
    func refusesAll(streams: String, code: ErrorCode, index: Int?) async throws {
        try await LiveGateway.with { live in
            let socket = try await live.connect()
            socket.send(#"{"t":"subscribe","streams":\#(streams),"ref":5}"#)
            let answer = try await socket.next { if case .error = $0.body { true } else { false } }
            guard case .error(let failure) = answer.body else { return }
            #expect((failure.error.code, failure.error.index, failure.stream) == (code, index, nil))
            #expect(answer.ref == Array("5".utf8))
            #expect(try await live.metric("reel_gateway_subscriptions") == 0)
        }
    }

    @Test("a frame has either a stream or streams") func eitherForm() async throws {
        try await LiveGateway.with { live in
            let socket = try await live.connect()
            socket.send(#"{"t":"subscribe","stream":"a","after":-1,"streams":[{"stream":"b","after":-1}]}"#)
            #expect(try await socket.nextError().error.code == .badFrame)
        }
    }

    @Test("frames after it are handled after its last stream") func keepsOrder() async throws {
        try await LiveGateway.with { live in
            let socket = try await live.connect()
            socket.send(frame(streams))
            for stream in streams { socket.send(.unsubscribe(stream)) }
            socket.send(frame([todo]))
            for _ in 0..<1_001 { _ = try await socket.nextSubscribed() }
            #expect(try await live.metric("reel_gateway_subscriptions") == 1)
            #expect(socket.heard.allSatisfy { if case .error = $0.body { false } else { true } })
        }
    }

    @Test("a second frame replaces the subscriptions of the first one") func replaces() async throws {
        try await LiveGateway.with { live in
            let socket = try await live.connect()
            for _ in 0..<3 { socket.send(frame(streams)) }
            for _ in 0..<3_000 { _ = try await socket.nextSubscribed() }
            #expect(try await live.metric("reel_gateway_subscriptions") == 1_000)
        }
    }

    @Test("a connection that closes meanwhile leaves nothing behind") func closes() async throws {
        try await LiveGateway.with { live in
            let socket = try await live.connect()
            socket.send(frame(streams))
            socket.close()
            try await eventually("all has ended") {
                let counts = [
                    try await live.metric("reel_gateway_connections"),
                    try await live.metric("reel_gateway_subscriptions"),
                ]
                return counts == [0, 0]
            }
        }
    }

    @Test("a frame with many streams takes turns with other clients, and its socket is held meanwhile")
    func takesTurns() throws {
        var generator = SeededNumbers(1)
        let (host, log) = (HandLoop(), try MemoryLog(partitions: 1))
        let gateway = GatewayLoop(on: host, over: log)
        gateway.received(Batches.batch(from: 0, [.event(todo, site, 0, "x")]))
        let clients = (0..<2).map { _ in
            let (client, wire) = (SocketClient(gateway, access: Access(nil)), Wire())
            client.opened(on: wire)
            client.received(text: Array(#"{"t":"hello","client":"test/1"}"#.utf8))
            return (client, wire)
        }
        func subscribed(_ index: Int) -> Int {
            clients[index].1.frames.count { if case .subscribed = $0 { true } else { false } }
        }
        clients[0].0.received(text: ClientFrame(frame(streams)).encoded())
        clients[1].0.received(text: Array(#"{"t":"subscribe","stream":"todo","after":-1}"#.utf8))
        #expect((subscribed(0), clients[0].1.holds) == (0, 1))
        var counts: [Int] = []
        while host.step(&generator) {
            counts.append(subscribed(0))
            if counts.count == 4 { #expect(clients[1].1.proofs.contains("todo 0…0"), "after \(counts)") }
        }
        #expect((counts.last, clients[0].1.holds) == (1_000, 0))
        #expect(zip([0] + counts, counts).allSatisfy { $1 - $0 <= 16 }, "\(counts)")
    }
}
