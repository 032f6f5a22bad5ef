import EventLogConformance
import Foundation
import NodeTestSupport
import ReelBase
import ReelCore
import ReelLog
import ReelNet
import ReelNode
import ReelSnapshot
import TestSupport
import Testing

@testable import ReelGateway

/// Tests the rights of clients at a gateway with keys.
@Suite struct TokenAccessTests {
    private let site = Site("6f1c0000-0000-4000-8000-000000000001")!
    private let todo = StreamName("todo-7")!
    private let other = StreamName("other")!

    @Test(
        "the gateway answers an unauthorized request after its head, without the large body",
        arguments: ["", "Bearer nonsense"]
    )
    func largeBodies(authorization: String) async throws {
        try await guarded { live, keys in
            let client = try RawSocket(live.gateway.address)
            #expect(
                client.send(
                    "POST /v1/streams/todo-7/events HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n"
                        + (authorization.isEmpty ? "" : "Authorization: \(authorization)\r\n")
                        + "Content-Length: 900000\r\n\r\n"
                )
            )
            let answer = client.receiveAll()
            #expect(answer.hasPrefix("HTTP/1.1 401") && answer.contains(#""code":"unauthorized""#), "\(answer)")
        }
    }

    @Test("the gateway refuses every client without a valid token") func refusesWithoutToken() async throws {
        try await guarded { live, keys in
            for (method, target) in [
                ("GET", "/v1/streams/todo-7/events"), ("GET", "/v1/streams/todo-7/head"),
                ("GET", "/v1/streams/todo-7/snapshot"), ("GET", "/v1/streams/todo-7/sites"),
                ("GET", "/v1/streams/todo-7/objects/a/b"),
                ("POST", "/v1/streams/todo-7/events"), ("GET", "/v1/cluster"),
                ("GET", "/metrics"), ("GET", "/v1/streams"),
            ] {
                let answer = try await live.ask(method, target, body: method == "POST" ? "{}" : "")
                #expect(answer.status == 401, "\(target)")
                #expect(answer.headers["www-authenticate"] == "Bearer")
                #expect(String(decoding: answer.body, as: UTF8.self).contains(#""code":"unauthorized""#))
            }
            for target in ["/healthz", "/readyz"] { #expect(try await live.get(target).status == 200) }
            let expired = try keys.token(publish: "*", expiresIn: -1)
            for token in [expired, "", "x.y.z", expired + "x"] {
                let answer = try await live.ask("GET", "/v1/streams/todo-7/head", headers: bearer(token))
                #expect(answer.status == 401)
                let socket = try await live.open()
                socket.send(.hello(.init(client: "test/1", token: token)))
                #expect(try await socket.nextError().error.code == .unauthorized)
                #expect(try await socket.closeCode() == 4401)
            }
            let silent = try await live.open()
            silent.send(.hello(.init(client: "test/1")))
            #expect(try await silent.closeCode() == 4401)
        }
    }

    @Test("a token grants exactly the rights that it lists") func grantsListedRights() async throws {
        try await guarded { live, keys in
            let token = try keys.token(read: "todo-*", publish: "todo-7")
            func status(_ method: String, _ target: String, _ body: String = "") async throws -> Int {
                try await live.ask(method, target, body: body, headers: bearer(token)).status
            }
            #expect(try await status("GET", "/v1/streams/todo-8/head") == 200)
            #expect(try await status("GET", "/v1/streams/other/head") == 403)
            #expect(try await status("GET", "/v1/streams/other/snapshot") == 403)
            #expect(try await status("POST", "/v1/streams/todo-8/events", "{}") == 403)
            #expect(try await status("GET", "/v1/cluster") == 403)
            #expect(try await status("GET", "/metrics") == 403)

            let socket = try await enter(live, token)
            socket.send(.subscribe(.init(stream: other, position: .now)), ref: "1")
            #expect(try await socket.nextError().error.code == .forbidden)
            socket.send(
                .fetch(.init(stream: other, epoch: live.log.epoch, ranges: [0...0])),
                ref: "2"
            )
            #expect(try await socket.nextError().error.code == .forbidden)
            socket.send(.publish(.init(stream: other, events: [Sent.insert(site, 0, "a")])))
            #expect(try await socket.nextNack().error.code == .forbidden)
            socket.send(.publish(.init(stream: todo, events: [Sent.insert(site, 0, "a")])))
            #expect(try await socket.nextAck().acks.count == 1)
            // The event contains the subject, whichever way it is read.
            let read = try await live.ask("GET", "/v1/streams/todo-7/events", headers: bearer(token))
            #expect(String(decoding: read.body, as: UTF8.self).contains(#""by":"ann""#))
        }
    }

    @Test("sites are listed for the right `inspect` alone, and that right gives nothing else")
    func inspect() async throws {
        try await guarded { live, keys in
            func status(_ token: String, _ target: String) async throws -> Int {
                try await live.ask("GET", target, headers: bearer(token)).status
            }
            let reader = try keys.token(publish: "*")
            let refused = try await live.ask("GET", "/v1/streams/todo-7/sites", headers: bearer(reader))
            #expect(refused.status == 403)
            #expect(String(decoding: refused.body, as: UTF8.self).contains("the right `inspect` for the stream todo-7"))
            let inspector = try keys.token(read: "other", publish: "other", inspect: "todo-*")
            // There is no snapshot node that could answer, so a request with the right gets 503.
            #expect(try await status(inspector, "/v1/streams/todo-7/sites") == 503)
            #expect(try await status(inspector, "/v1/streams/other/sites") == 403)
            for target in ["head", "snapshot", "events"] {
                #expect(try await status(inspector, "/v1/streams/todo-7/\(target)") == 403, "\(target)")
            }
        }
    }

    @Test("a client sees only the names of crowded streams that it may inspect")
    func crowdedStreams() throws {
        let streams = try [("todo-7", 60_000), ("other", 50_000), ("todo-8", 100_000)].map { name, sites in
            CrowdedStream(stream: try #require(StreamName(name)), partition: 0, seq: 9, sites: sites)
        }
        func text(_ access: Access) throws -> String {
            let response = try CrowdedStream.response(streams, of: Epoch(1), for: access)
            return String(decoding: response.body, as: UTF8.self)
        }
        func grant(_ inspect: String...) throws -> Access {
            let patterns = try inspect.map { try #require(StreamPattern($0)) }
            return Access(TokenGrant(subject: "ann", expiresAt: 1, read: [], publish: [], inspect: patterns))
        }
        let head = #"{"epoch":"0000000000000001","limit":100000,"streams":["#
        let eight = #"{"stream":"todo-8","partition":0,"seq":9,"sites":100000}"#
        let seven = #"{"stream":"todo-7","partition":0,"seq":9,"sites":60000}"#
        let other = #"{"stream":"other","partition":0,"seq":9,"sites":50000}"#
        #expect(try text(Access(nil)) == head + "\(eight),\(seven),\(other)]}", "without keys, to everybody")
        #expect(try text(grant("todo-*")) == head + "\(eight),\(seven)]}")
        #expect(try text(grant("else")) == head + "]}")
        #expect(throws: Problem.self) { try text(grant()) }
    }

    @Test("streams that a token does not give are refused each time, and close no connection")
    func missingRightsAreNoAbuse() async throws {
        try await guarded { live, keys in
            let socket = try await enter(live, keys.token(read: "todo-*", publish: "todo-*"))
            for number in 0..<300 {
                let stream = StreamName("other-\(number)")!
                socket.send(.subscribe(.init(stream: stream, position: .now)))
                socket.send(.fetch(.init(stream: stream, epoch: live.log.epoch, ranges: [0...0])))
            }
            for _ in 0..<600 { #expect(try await socket.nextError().error.code == .forbidden) }
            socket.send(.publish(.init(stream: todo, events: [Sent.insert(site, 0, "a")])))
            #expect(try await socket.nextAck().acks.count == 1)
        }
    }

    @Test("a publish in one segment with a hello counts after it and not before it", arguments: [true, false])
    func oneSegment(isBehind: Bool) async throws {
        try await guarded { live, keys in
            let hello = ClientFrame(.hello(.init(client: "test/1", token: try keys.token(publish: "*")))).encoded()
            let publish = ClientFrame(.publish(.init(stream: todo, events: [Sent.insert(site, 0, "a")]))).encoded()
            let client = try RawSocket(live.gateway.address)
            let request =
                "GET /v1/socket HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                + "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
                + "Sec-WebSocket-Protocol: reel.v1\r\n\r\n"
            let frames = isBehind ? [hello, publish] : [publish, hello]
            #expect(client.send(Array(request.utf8) + frames.flatMap(Self.masked)))
            let events = "/v1/streams/todo-7/events"
            let reader = bearer(try keys.token(publish: "*"))
            if isBehind {
                try await eventually("the event is in the log") {
                    let answer = try await live.ask("GET", events, headers: reader)
                    return String(decoding: answer.body, as: UTF8.self).contains(#""op":0"#)
                }
            } else {
                #expect(client.receiveAll().contains("expected hello first"), "and the connection ends")
                let answer = try await live.ask("GET", events, headers: reader)
                #expect(!String(decoding: answer.body, as: UTF8.self).contains(#""op":0"#))
            }
        }
    }

    /// Returns a text message in the form that a client sends, with a mask of zeros.
    private static func masked(_ text: [UInt8]) -> [UInt8] {
        [0x81, 0x80 | 126, UInt8(text.count >> 8), UInt8(text.count & 0xff), 0, 0, 0, 0] + text
    }

    @Test("a token of the handshake serves too") func aTokenOfThe() async throws {
        try await guarded { live, keys in
            let token = try keys.token(publish: "*")
            let refused = try await live.ask("GET", "/v1/socket", headers: handshake(bearer("nonsense")))
            #expect(refused.status == 401)
            let socket = try await live.open(bearer(token))
            socket.send(.hello(.init(client: "test/1")))
            _ = try await socket.next { if case .welcome = $0.body { true } else { false } }
        }
    }

    @Test("a connection ends with its token unless it is renewed") func aConnectionEndsWith() async throws {
        // On a slow machine a token may expire too early. The test then repeats with a longer lifetime.
        for seconds: Int64 in [2, 10, 60] {
            if try await aConnectionOutlives(aTokenOf: seconds) { return }
        }
        Issue.record("no connection was renewed within a minute")
    }

    /// Returns false if the token expired before it could be renewed.
    private func aConnectionOutlives(aTokenOf seconds: Int64) async throws -> Bool {
        var wasInTime = false
        // This client causes two errors. The end of a subscription does not count as a third.
        try await guarded(errors: 3) { live, keys in
            let renewed = try await enter(live, keys.token(publish: "*"))
            renewed.send(.subscribe(.init(stream: todo, position: .now)))
            renewed.send(.subscribe(.init(stream: other, position: .now)))
            for _ in 0..<2 { _ = try await renewed.next { if case .subscribed = $0.body { true } else { false } } }

            renewed.send(.renew(token: try keys.token("bob", publish: "*")), ref: "1")
            #expect(try await renewed.nextError().error.code == .forbidden)
            renewed.send(.renew(token: "nonsense"), ref: "2")
            #expect(try await renewed.nextError().error.code == .unauthorized)
            renewed.send(.renew(token: try keys.token(read: "todo-*", publish: "todo-*")), ref: "3")
            let welcome = try await renewed.next { if case .welcome = $0.body { true } else { false } }
            #expect(welcome.ref == Array("3".utf8))
            let ended = try await renewed.nextError()
            #expect(ended.error.code == .forbidden)
            #expect(ended.stream == other)

            let short = try keys.token(publish: "*", expiresIn: seconds)
            let expiredMs = WallClock.nowMs() + seconds * 1_000
            let left: TestSocket
            do {
                left = try await enter(live, short)
                for (token, ref) in [(short, "4"), (try keys.token(publish: "*"), "5")] {
                    renewed.send(.renew(token: token), ref: ref)
                    _ = try await renewed.next { frame in
                        if case .welcome = frame.body { frame.ref == Array(ref.utf8) } else { false }
                    }
                }
            } catch {
                guard WallClock.nowMs() >= expiredMs - 1_000 else { throw error }
                return
            }
            #expect(try await left.nextError().error.code == .unauthorized)
            #expect(try await left.closeCode() == 4401)
            renewed.send(.publish(.init(stream: todo, events: [Sent.insert(site, 0, "a")])))
            #expect(try await renewed.nextAck().acks.count == 1)
            wasInTime = true
        }
        return wasInTime
    }

    @Test("new keys are taken and old ones forgotten") func newKeysAreTaken() async throws {
        try await guarded { live, keys in
            let old = try keys.token(publish: "*")
            try keys.change()
            #expect(try await live.ask("GET", "/v1/streams/a/head", headers: bearer(old)).status == 200)
            try keys.gate.reload()
            #expect(try await live.ask("GET", "/v1/streams/a/head", headers: bearer(old)).status == 401)
            let new = try keys.token(publish: "*")
            #expect(try await live.ask("GET", "/v1/streams/a/head", headers: bearer(new)).status == 200)
            try "nonsense".write(toFile: keys.gate.file, atomically: true, encoding: .utf8)
            #expect(throws: TokenRefusal.self) { try keys.gate.reload() }
            #expect(try await live.ask("GET", "/v1/streams/a/head", headers: bearer(new)).status == 200)
        }
    }

    @Test("the snapshot node decides which clients can read state") func nodeChecksStateAccess() async throws {
        let keys = try KeyFile()
        let log = try MemoryLog()
        let folder = FileManager.default.temporaryDirectory.appending(path: "reel-state-\(UUID().uuidString)").path
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: folder) }
        var common = NodeSettings.forTests
        common.announceMs = 20
        common.tokens = keys.gate
        var settings = SnapshotSettings(folder: folder)
        settings.reachMs = 600_000
        let node = try SnapshotServer(log: log, settings: settings, common: common)
        // The gateway itself has no keys, so the token that it forwards decides.
        try await LiveGateway.with(log) {
            $0.node.announceMs = 20
        } _: { live in
            try await live.cluster(contains: #""role":"snapshot""#)
            func status(_ headers: HTTPHeaders) async throws -> Int {
                try await live.ask("GET", "/v1/streams/todo-7/snapshot?epoch=\(log.epoch)", headers: headers).status
            }
            try await eventually("the node answers") { try await status(bearer(keys.token(publish: "*"))) == 200 }
            #expect(try await status([:]) == 401)
            #expect(try await status(bearer("nonsense")) == 401)
            #expect(try await status(bearer(keys.token(read: "other", publish: "*"))) == 403)
        }
        node.end.begin()
        await node.waitUntilEnded()
    }

    @Test("an event stream ends with its token") func anEventStreamEnds() async throws {
        try await guarded { live, keys in
            let path = "/v1/streams/todo-7/events"
            #expect(try await live.ask("GET", path, headers: ["accept": "text/event-stream"]).status == 401)
            // On a slow machine a token may expire too early. The next attempt has a longer lifetime.
            for seconds: Int64 in [2, 10, 60] {
                var headers = bearer(try keys.token(publish: "*", expiresIn: seconds))
                headers.add("accept", "text/event-stream")
                let reader = try live.reader(path, headers)
                try await eventually("its end") { reader.hasEnded }
                if reader.head?.status == 401 { continue }
                #expect(reader.messages.last?.event == "problem")
                #expect(reader.messages.last?.member("code") == "unauthorized")
                return
            }
            Issue.record("no event stream was begun within a minute")
        }
    }

    // MARK: Parts

    private func guarded(
        errors: Int = 100,
        _ body: (LiveGateway, KeyFile) async throws -> Void
    ) async throws {
        let keys = try KeyFile()
        let settings = { (settings: inout GatewaySettings) in
            settings.errors = errors
            settings.node.tokens = keys.gate
            settings.helloMs = 600_000
        }
        try await LiveGateway.with(nil, settings) { live in try await body(live, keys) }
    }

    private func enter(_ live: LiveGateway, _ token: String) async throws -> TestSocket {
        let socket = try await live.open()
        socket.send(.hello(.init(client: "test/1", token: token)))
        _ = try await socket.next { if case .welcome = $0.body { true } else { false } }
        return socket
    }

    private func bearer(_ token: String) -> HTTPHeaders { ["authorization": "Bearer \(token)"] }

    private func handshake(_ headers: HTTPHeaders) -> HTTPHeaders {
        var headers = headers
        headers.add("upgrade", "websocket")
        headers.add("connection", "Upgrade")
        headers.add("sec-websocket-version", "13")
        headers.add("sec-websocket-key", "AAAAAAAAAAAAAAAAAAAAAA==")
        headers.add("sec-websocket-protocol", "reel.v1")
        return headers
    }
}
