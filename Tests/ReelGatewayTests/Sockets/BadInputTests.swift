import NodeTestSupport
import ReelCore
import ReelLog
import Testing

@testable import ReelGateway
@testable import ReelNet

/// Bad input of a client gets an error code, changes nothing, and does not affect other clients.
@Suite(.timeLimit(.minutes(15))) struct BadInputTests {
    static let todo = StreamName("todo")!
    let todo = BadInputTests.todo
    let site = Site(high: 1, low: 1)
    static let id = "00000000-0000-0001-0000-000000000001"
    static let epoch = "9f00000000000001"
    static let deep = String(repeating: "[", count: 100) + String(repeating: "]", count: 100)

    /// Frames on an open socket, each with the code of the error that answers it.
    static let frames: [(said: String, code: ErrorCode)] = [
        ("", .badJSON),
        ("{", .badJSON),
        ("[]", .badFrame),
        ("hello", .badJSON),
        (#"{"t":"publish""#, .badJSON),
        (#"{"t":"sing"}"#, .badFrame),
        (#"{"t":7}"#, .badFrame),
        (#"{"stream":"todo"}"#, .badFrame),
        (#"{"t":"subscribe","t":"subscribe","stream":"todo","after":-1}"#, .badJSON),
        (#"{"t":"subscribe","stream":"\ud800","after":-1}"#, .badJSON),
        (#"{"t":"subscribe","stream":"todo","after":-1,"x":\#(deep)}"#, .badJSON),
        (#"{"t":"subscribe","stream":"todo"}"#, .badFrame),
        (#"{"t":"subscribe","stream":"todo","after":"then"}"#, .badFrame),
        (#"{"t":"subscribe","stream":"todo","after":1e999}"#, .badFrame),
        (#"{"t":"subscribe","stream":"todo","after":-2}"#, .badFrame),
        (#"{"t":"subscribe","stream":"todo","after":3}"#, .badFrame),
        (#"{"t":"subscribe","stream":"a b","after":-1}"#, .badStream),
        (#"{"t":"subscribe","stream":"~reel","after":-1}"#, .badStream),
        (#"{"t":"subscribe","stream":"..","after":-1}"#, .badStream),
        (#"{"t":"subscribe","stream":"","after":-1}"#, .badStream),
        (#"{"t":"subscribe","stream":"todo","after":3,"epoch":"0000000000000000"}"#, .epochChanged),
        (#"{"t":"subscribe","stream":"todo","after":3,"epoch":"\#(epoch)"}"#, .aheadOfLog),
        (#"{"t":"fetch","stream":"todo","epoch":"\#(epoch)","ranges":[]}"#, .badRange),
        (#"{"t":"fetch","stream":"todo","epoch":"\#(epoch)","ranges":[[3,1]]}"#, .badRange),
        (
            #"{"t":"fetch","stream":"todo","epoch":"\#(epoch)","ranges":["#
                + [String](repeating: "[0,9007199254740991]", count: 1_100).joined(separator: ",") + "]}", .badRange
        ),
        ("nothing", .badJSON),
        ("null", .badFrame),
        ("[1,2", .badJSON),
        ("7 8", .badJSON),
        (#"{"t":"unsubscribe","stream":"todo","ref":"\#(String(repeating: "x", count: 1_100))"}"#, .badFrame),
        (#"{"t":"fetch","stream":"todo","epoch":"\#(epoch)","ranges":[[0,9007199254740991]]}"#, .badRange),
        (#"{"t":"fetch","stream":"todo","epoch":"\#(epoch)","ranges":[[0,9007199254740992]]}"#, .badFrame),
        (#"{"t":"fetch","stream":"todo","epoch":"\#(epoch)","ranges":[[-1,1]]}"#, .badFrame),
        (#"{"t":"fetch","stream":"todo","epoch":"\#(epoch)","ranges":[[5,6]]}"#, .aheadOfLog),
        (#"{"t":"fetch","stream":"todo","epoch":"0000000000000000","ranges":[[0,1]]}"#, .epochChanged),
        (#"{"t":"fetch","stream":"todo","ranges":[[0,1]]}"#, .badFrame),
        (#"{"t":"publish","stream":"todo","events":[]}"#, .badFrame),
        (#"{"t":"publish","stream":"todo","events":{}}"#, .badFrame),
        (#"{"t":"publish","stream":"todo","events":[7]}"#, .badEvent),
        (#"{"t":"publish","stream":"todo","events":[{"type":"insert"}]}"#, .badEvent),
        (#"{"t":"publish","stream":"todo/../x","events":[{}]}"#, .badStream),
        (#"{"t":"unsubscribe"}"#, .badFrame),
    ]

    @Test("each bad frame has its code and leaves the others alone") func eachBadFrameHas() async throws {
        try await LiveGateway.with { live in
            let other = try await live.connect()
            other.send(.subscribe(.init(stream: todo, position: .after(-1))))
            let subscribed = try await other.nextSubscribed()
            let socket = try await live.connect()
            for (said, code) in Self.frames {
                socket.send(said)
                let error = try await socket.nextError()
                #expect(error.error.code == code, "\(said): \(error.error.message)")
                #expect(!error.error.message.isEmpty)
            }
            for partition in 0..<live.log.partitions {
                #expect(try live.log.bounds(partition).last == -1, "nothing was appended")
            }
            socket.send(.publish(.init(stream: todo, events: [Sent.insert(site, 0, "a")])))
            #expect(try await socket.nextAck().acks.map(\.seq) == [0])
            let events = try await other.events(of: todo, partition: subscribed.partition, after: -1, through: 0)
            #expect(events.count == 1)
        }
    }

    @Test("the gateway limits a frame to 16 KiB before welcome and to welcome's limit afterwards")
    func limitsHelloFrame() async throws {
        try await LiveGateway.with { live in
            let room = SocketClient.helloBytes
            func hello(_ count: Int) -> String {
                let start = #"{"t":"hello","client":"test/1","x":""#
                return start + String(repeating: " ", count: count - start.utf8.count - 2) + #""}"#
            }
            let socket = try await live.open()
            socket.send(hello(room))
            _ = try await socket.next { if case .welcome = $0.body { true } else { false } }
            socket.send(#"{"t":"unsubscribe","stream":"todo","x":""# + String(repeating: " ", count: 900_000) + #""}"#)
            _ = try await socket.next { if case .unsubscribed = $0.body { true } else { false } }
            let long = try await live.open()
            long.send(hello(room + 1))
            #expect(try await long.closeCode() == 1009)
            #expect(long.heard.isEmpty)
        }
    }

    @Test("a packed frame that is longer than 16 KiB is refused before welcome")
    func packedHello() async throws {
        try await LiveGateway.with { live in
            let text = #"{"t":"hello","client":"test/1","x":""# + String(repeating: " ", count: 1_000_000) + #""}"#
            var packed = WebSocketFrame(.text, Array(text.utf8)).packed(by: MessageDeflater())
            #expect(packed[1] == 126, "it is short as it comes")
            // A client must mask its frames; four zeros are the masking key.
            packed[1] |= 0x80
            packed.insert(contentsOf: [0, 0, 0, 0], at: 4)
            let client = try RawSocket(live.gateway.address)
            #expect(
                client.send(
                    "GET /v1/socket HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
                        + "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
                        + "Sec-WebSocket-Protocol: reel.v1\r\nSec-WebSocket-Extensions: permessage-deflate\r\n\r\n"
                )
            )
            #expect(client.send(packed))
            #expect(client.send(WebSocketFrame.encode(.close, WebSocketFrame.closePayload(1009, ""), mask: 1)))
            let answer = client.receiveAllBytes()
            #expect(String(decoding: answer, as: UTF8.self).contains("permessage-deflate"))
            #expect(answer.firstRange(of: WebSocketFrame.closePayload(1009, "a message of more")) != nil)
        }
    }

    /// Events with a site and an op, each with the code of its final nack.
    static let events: [(sent: String, code: ErrorCode)] = [
        (#"{"type":"insert","site":"\#(id)","op":0,"model":"task","id":"a","seq":1}"#, .badEvent),
        (#"{"type":"insert","site":"\#(id)","op":0,"model":"task","id":"a","by":"eve"}"#, .badEvent),
        (#"{"type":"insert","site":"\#(id)","op":0,"model":"task","id":"a","at":1}"#, .badEvent),
        (#"{"type":"insert","site":"\#(id)","op":0,"model":"task"}"#, .badEvent),
        (#"{"type":"sing","site":"\#(id)","op":0,"model":"task","id":"a"}"#, .badEvent),
        (#"{"type":"insert","site":"\#(id)","op":0,"model":"","id":"a"}"#, .badEvent),
        (#"{"type":"insert","site":"\#(id)","op":0,"model":"task","id":"a","fields":{"n":1e999}}"#, .badNumber),
        (
            #"{"type":"insert","site":"\#(id)","op":0,"model":"task","id":"a","fields":{"n":9007199254740993}}"#,
            .badNumber
        ),
        (#"{"type":"insert","site":"\#(id)","op":0,"model":"task","id":"a","base":0}"#, .badEvent),
    ]

    @Test("each bad event is nacked with its code") func eachBadEventIs() async throws {
        try await LiveGateway.with { live in
            for (sent, code) in Self.events {
                let socket = try await live.connect()
                socket.send(#"{"t":"publish","stream":"todo","ref":1,"events":[\#(sent)]}"#)
                let nack = try await socket.nextNack()
                #expect(nack.error.code == code && nack.op == 0 && nack.error.retryMs == nil, "\(sent)")
                socket.close()
            }
            let socket = try await live.connect()
            let large = String(repeating: "x", count: 300 << 10)
            socket.send(.publish(.init(stream: todo, events: [Sent.insert(site, 0, "a", large)])))
            #expect(try await socket.nextNack().error.code == .tooLarge)
            socket.send(.publish(.init(stream: todo, epoch: Epoch(7), events: [Sent.insert(site, 0, "a")])))
            #expect(try await socket.nextNack().error.code == .epochChanged)
        }
    }

    @Test("the gateway closes a connection after an invalid or oversized frame") func closesOnInvalidFrame()
        async throws
    {
        #expect(GatewaySettings().frameBytes == 1 << 20)
        // The kernel buffers a frame of this size completely. A client that is still writing may see the connection
        // end before it reads the reason.
        let frameBytes = 10_000
        try await LiveGateway.with(nil, { $0.frameBytes = frameBytes }) { live in
            let early = try await live.open()
            early.send(.publish(.init(stream: todo, events: [Sent.insert(site, 0, "a")])))
            #expect(try await early.nextError().error.code == .badFrame)
            #expect(try await early.closeCode() == 1008)
            let twice = try await live.connect()
            twice.send(.hello(.init(client: "test/1")))
            #expect(try await twice.closeCode() == 1008)
            let wrong = try await live.open()
            wrong.send(#"{"t":"hello","client":7}"#)
            #expect(try await wrong.closeCode() == 1008)
            let bytes = try await live.connect()
            bytes.send(bytes: [0x22, 0xff, 0xfe, 0x22])
            #expect(try await bytes.closeCode() == 1007)
            let large = try await live.connect()
            large.send(bytes: [UInt8](repeating: 0x20, count: frameBytes + 1))
            #expect(try await large.closeCode() == 1009)
            let noisy = try await live.connect()
            for _ in 0..<100 { noisy.send("{}") }
            #expect(try await noisy.closeCode() == 1008)
            #expect(noisy.heard.count == 100)
        }
    }

    @Test("too many subscriptions are refused") func tooManySubscriptionsAre() async throws {
        try await LiveGateway.with(nil, { $0.subscriptions = 2 }) { live in
            let socket = try await live.connect()
            for name in ["a", "b", "b"] {
                socket.send(.subscribe(.init(stream: StreamName(name)!, position: .now)))
                _ = try await socket.nextSubscribed()
            }
            socket.send(.subscribe(.init(stream: StreamName("c")!, position: .now)))
            #expect(try await socket.nextError().error.code == .limit)
        }
    }

    @Test("subscriptions and fetches beyond a limit are refused each time, and close no connection")
    func refusedSubscriptionsAreNoAbuse() async throws {
        try await LiveGateway.with(nil, { $0.subscriptions = 2 }) { live in
            let socket = try await live.connect()
            let names = (0..<1_100).map { StreamName("s\($0)")! }
            for name in names { socket.send(.subscribe(.init(stream: name, position: .now))) }
            for _ in 0..<2 { _ = try await socket.nextSubscribed() }
            for _ in 2..<1_100 { #expect(try await socket.nextError().error.code == .limit) }
            // Subscriptions within the limit still work.
            socket.send(.publish(.init(stream: names[1], events: [Sent.insert(site, 0, "a")])))
            _ = try await socket.nextAck()
            // An invalid frame still counts as an error of the client.
            for _ in 0..<100 { socket.send("{}") }
            #expect(try await socket.closeCode() == 1008)
        }
    }

    @Test("subscribes that wait for their position are bounded") func subscribesThatWaitFor() async throws {
        try await LiveGateway.with(
            nil,
            {
                $0.subscriptions = 3
                $0.aheadMs = 1_000_000
            }
        ) { live in
            let socket = try await live.connect()
            for seq in 10..<14 {
                socket.send(.subscribe(.init(stream: todo, position: .after(Seq(seq)), epoch: live.log.epoch)))
            }
            #expect(try await socket.nextError().error.code == .limit)
        }
    }

    /// Requests, each with the status and the code of its answer.
    static let requests: [(method: String, target: String, body: String, status: Int, code: ErrorCode)] = [
        ("GET", "/v1/nothing", "", 404, .notFound),
        ("PUT", "/v1/streams/todo/events", "", 405, .methodNotAllowed),
        ("GET", "/v1/streams/todo/events?after=1&after=2", "", 400, .badRequest),
        ("GET", "/v1/streams/todo/events?aftre=1", "", 400, .badRequest),
        ("GET", "/v1/streams/todo/events?after=x", "", 400, .badRange),
        ("GET", "/v1/streams/todo/events?after=-2", "", 400, .badRange),
        ("GET", "/v1/streams/todo/events?limit=0", "", 400, .badRange),
        ("GET", "/v1/streams/todo/events?limit=10001", "", 400, .badRange),
        ("GET", "/v1/streams/todo/events?epoch=77", "", 400, .badRequest),
        ("GET", "/v1/streams/todo/events?epoch=0000000000000000", "", 409, .epochChanged),
        ("GET", "/v1/streams/todo/events?after=5", "", 409, .aheadOfLog),
        ("GET", "/v1/streams/~reel/events", "", 400, .badStream),
        ("GET", "/v1/streams/%2e%2E/events", "", 400, .badStream),
        ("GET", "/v1/streams/%zz/events", "", 400, .badRequest),
        ("GET", "/v1/streams/%ff/events", "", 400, .badRequest),
        ("GET", "/v1/streams/todo/blocks/\(epoch)/0", "", 404, .notFound),
        ("GET", "/v1/streams/todo/blocks/\(epoch)/99999999999999999999", "", 400, .badRange),
        ("GET", "/v1/streams/todo/blocks/0000000000000000/0", "", 409, .epochChanged),
        ("GET", "/v1/streams/todo/snapshot", "", 503, .nodeBehind),
        ("GET", "/v1/streams/todo/delta", "", 400, .badRequest),
        ("GET", "/v1/socket", "", 400, .badRequest),
        ("POST", "/v1/streams/todo/events", "", 400, .badJSON),
        ("POST", "/v1/streams/todo/events", "{}", 400, .badRequest),
        ("POST", "/v1/streams/todo/events", #"{"events":[]}"#, 400, .badRequest),
        ("POST", "/v1/streams/todo/events", #"{"events":[7]}"#, 400, .badEvent),
        ("POST", "/v1/streams/todo/events", #"{"events":[{"site":"\#(id)","op":0,"type":"no"}]}"#, 400, .badEvent),
        ("POST", "/v1/streams/todo/events", #"{"events":[],"events":[]}"#, 400, .badJSON),
        ("POST", "/v1/streams/todo/events", #"{"epoch":"0000000000000000","events":[{}]}"#, 409, .epochChanged),
    ]

    @Test("each bad request has its status and code") func eachBadRequestHas() async throws {
        try await LiveGateway.with { live in
            for (method, target, body, status, code) in Self.requests {
                let answer = try await live.ask(method, target, body: body)
                let text = String(decoding: answer.body, as: UTF8.self)
                #expect(answer.status == status, "\(method) \(target): \(text)")
                #expect(text.contains(#""code":"\#(code.rawValue)""#), "\(method) \(target): \(text)")
                #expect(answer.headers["content-type"] == "application/problem+json")
            }
            let plain = try await live.ask(
                "POST",
                "/v1/streams/todo/events",
                body: "{}",
                headers: ["content-type": "text/plain"]
            )
            #expect(plain.status == 415)
            for partition in 0..<live.log.partitions { #expect(try live.log.bounds(partition).last == -1) }
        }
    }

    @Test("the bad event of a request is named by its index") func theBadEventOf() async throws {
        try await LiveGateway.with { live in
            let good = String(decoding: Sent.insert(site, 0, "a"), as: UTF8.self)
            let answer = try await live.ask(
                "POST",
                "/v1/streams/todo/events",
                body: #"{"events":[\#(good),{"type":"no"}]}"#
            )
            #expect(answer.status == 400)
            #expect(String(decoding: answer.body, as: UTF8.self).contains(#""index":1"#))
        }
    }
}
