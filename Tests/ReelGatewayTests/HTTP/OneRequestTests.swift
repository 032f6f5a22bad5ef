import EventLogConformance
import Foundation
import ReelCore
import ReelLog
import ReelNet
import ReelNode
import ReelSnapshot
import TestSupport
import Testing

@testable import ReelGateway

/// Tests publishes whose events name no site.
@Suite(.timeLimit(.minutes(15))) struct OneRequestTests {
    private let path = "/v1/streams/todo/events"
    private let noop = #"{"type":"noop"}"#

    private func insert(_ id: String, _ title: String = "x") -> String {
        #"{"type":"insert","model":"task","id":"\#(id)","fields":{"title":"\#(title)"}}"#
    }

    private func publish(
        _ live: LiveGateway,
        _ events: [String],
        key: String? = nil,
        token: String? = nil,
        query: String = "",
        stream: String = "todo"
    ) async throws -> HTTPResponse {
        var headers = HTTPHeaders()
        if let key { headers.add("idempotency-key", key) }
        if let token { headers.add("authorization", "Bearer \(token)") }
        return try await live.ask(
            "POST",
            "/v1/streams/\(stream)/events" + query,
            body: #"{"events":[\#(events.joined(separator: ","))]}"#,
            headers: headers
        )
    }

    private struct Row: Equatable {
        var site: String
        var op: Int
        var seq: Int
        var outcome: String?
    }

    private func rows(_ answer: HTTPResponse) throws -> [Row] {
        try #require(try answer.members["acks"] as? [[String: Any]]).map { ack in
            Row(
                site: try #require(ack["site"] as? String),
                op: try #require(ack["op"] as? Int),
                seq: try #require(ack["seq"] as? Int),
                outcome: ack["outcome"] as? String
            )
        }
    }

    private func code(_ answer: HTTPResponse) throws -> String {
        "\(answer.status) \(try answer.members["code"] as? String ?? "")"
    }

    @Test("events without site and op get a site of version 8, which ends with the last of them")
    func bare() async throws {
        try await StateWay.each { live in
            let answer = try await publish(live, [insert("1"), insert("2"), "{ \"type\" : \"noop\" }"])
            let acks = try rows(answer)
            #expect(answer.status == 200 && acks.map(\.op) == [0, 1, 2] && acks.map(\.seq) == [0, 1, 2])
            #expect(acks.allSatisfy { $0.outcome == "applied" && $0.site == acks[0].site })
            let site = try #require(Site(acks[0].site))
            #expect(site.isOneRequest)
            let events = try #require(try await live.get(path).members["events"] as? [[String: Any]])
            #expect(events.map { $0["last"] as? Bool } == [nil, nil, true])
            let sites = try await live.get("/v1/streams/todo/sites?epoch=\(live.log.epoch)&min_seq=2").members
            #expect(sites["living"] as? Int == 0 && sites["ended"] as? Int == 1)
            let next = try rows(try await publish(live, [#"{"last":true,"type":"noop"}"#]))
            #expect(next.map(\.op) == [0] && next[0].site != acks[0].site)
            let one = try await publish(live, [#"{"type":"update","model":"task","id":"none"}"#])
            #expect(try code(one) == "409 no_object")
        }
    }

    @Test("events of which only some name a site are refused, and so is half a name")
    func mixed() async throws {
        try await LiveGateway.with { live in
            let named = EventText.sent("noop", Site(high: 1, low: 1), 0).text
            for (events, index, says) in [
                ([named, noop], 1, "found neither site nor op, which event 0 of the request has"),
                ([noop, named], 0, "found neither site nor op, which event 1 of the request has"),
                ([#"{"type":"noop","op":0}"#], 0, #""site""#),
                ([#"{"type":"noop","site":"\#(Site(high: 1, low: 1))"}"#], 0, #""op""#),
                ([#"{"type":"noop","last":true}"#, noop], 1, "found an event behind one with"),
                ([noop, "7"], 1, "expected an object"),
                ([#"{"type":"noop","last":false}"#], 0, "last"),
                ([noop, #"{"type":"insert"}"#], 1, "model"), ([noop, #"{"type":"noop","nope":1}"#], 1, "nope"),
                (["{}"], 0, "type"),
            ] {
                let answer = try await publish(live, events)
                #expect(try code(answer) == "400 bad_event", "\(events)")
                #expect(try answer.members["index"] as? Int == index, "\(events)")
                let detail = try #require(try answer.members["detail"] as? String)
                #expect(detail.contains(says), "\(detail)")
            }
            #expect(try code(try await publish(live, [#"{"type":"noop","fields":{"n":1e999}}"#])) == "400 bad_number")
            let many = try await publish(live, [String](repeating: noop, count: 10_000))
            #expect(try code(many) == "400 limit")
            #expect(try many.members["limit"] as? Int == 1_000)
            #expect(try live.log.bounds(0).last == -1)
            let most = try await publish(live, [String](repeating: noop, count: 1_000), query: "?outcome=0")
            #expect(try rows(most).map(\.op) == Array(0..<1_000))
        }
    }

    @Test("a client may not use a site of version 8, by HTTP or on a socket")
    func versionEight() async throws {
        try await LiveGateway.with { live in
            let site = Site.randomOneRequest()
            let event = EventText.sent("noop", site, 0).text
            let answer = try await publish(live, [event])
            #expect(try code(answer) == "400 bad_event")
            #expect(try answer.members["index"] as? Int == 0)
            #expect((try answer.members["detail"] as? String)?.contains("UUID version 8") == true)
            let body = #"{"epoch":"\#(live.log.epoch)","after":-1,"events":[\#(event)]}"#
            #expect(try code(try await live.ask("POST", "/v1/streams/todo/sync", body: body)) == "400 bad_event")
            let socket = try await live.connect()
            socket.send(.publish(.init(stream: StreamName("todo")!, events: [Array(event.utf8)])))
            let nack = try await socket.nextNack()
            #expect(nack.site == site && nack.error.code == .badEvent && nack.error.retryMs == nil)
            // Other variant bits make it a UUID of another kind, and clients may use such a site.
            let free = Site(high: site.high, low: site.low | 3 << 62)
            #expect(try await publish(live, [EventText.sent("noop", free, 0).text]).status == 200)
        }
    }

    @Test("a key makes a retry safe: the same answer, and nothing counts twice")
    func retry() async throws {
        try await StateWay.each { live in
            let events = [insert("1"), #"{"type":"update","model":"task","id":"none"}"#, insert("2")]
            let first = try await publish(live, events, key: "order-17")
            let second = try await publish(live, events, key: "order-17")
            #expect(first.status == 200 && second.status == 200)
            #expect(try rows(first) == rows(second))
            #expect(try rows(first).map(\.outcome) == ["applied", "rejected(no_object)", "applied"])
            #expect(try first.members["rejected"] as? Int == 1)
            #expect(try second.members["rejected"] as? Int == 1)
            let site = try #require(Site(try rows(first)[0].site))
            #expect(site.isOneRequest)
            let sites = try await live.get("/v1/streams/todo/sites?epoch=\(live.log.epoch)&min_seq=5").members
            #expect(sites["living"] as? Int == 0 && sites["ended"] as? Int == 1)
            // The same key in another stream gives another site.
            let elsewhere = try await publish(live, events, key: "order-17", stream: "other")
            #expect(try rows(elsewhere)[0].site != site.description)
        }
    }

    @Test("a key with other content is a conflict: with another value, with more events and with fewer")
    func conflict() async throws {
        try await StateWay.each { live in
            let events = [insert("1"), insert("2")]
            #expect(try await publish(live, events, key: "k").status == 200)
            for other in [[insert("1", "y"), insert("2")], [insert("1")], events + [insert("3")], [noop]] {
                #expect(try code(try await publish(live, other, key: "k")) == "409 conflict", "\(other)")
            }
            let state = String(decoding: try await live.get("/v1/streams/todo/snapshot").body, as: UTF8.self)
            #expect(!state.contains(#"["y","#) && !state.contains(#""3""#))
        }
    }

    /// The gateway's ring is too small for the records, as on a gateway that has not seen them.
    @Test("a retry at a gateway that has not seen the first try is answered by the snapshot node")
    func otherGateway() async throws {
        try await StateWay.each({ $0.ringBytes = 1 }) { live in
            let events = [insert("1"), insert("2")]
            let first = try await publish(live, events, key: "k")
            for number in 0..<20 { _ = try await publish(live, [insert("x\(number)")]) }
            let second = try await publish(live, events, key: "k")
            #expect(second.status == 200)
            #expect(try rows(first) == rows(second))
            let other = try await publish(live, [insert("1"), insert("2", "y")], key: "k")
            #expect(try code(other) == "409 conflict")
            #expect(try other.members["index"] as? Int == 1)
            #expect(try rows(other).map(\.outcome) == ["applied", "conflict"])
        }
    }

    @Test("a retry continues where the first attempt stopped")
    func halfAppended() async throws {
        try await StateWay.each { live in
            let events = [insert("1"), insert("2"), insert("3")]
            let stream = try #require(StreamName("todo"))
            let site = try #require(try IdempotencyKey(["idempotency-key": "k"])).site(of: nil, in: stream)
            let one = try #require(try OneRequest(events.map { Array($0.utf8) }, site: site, hasKey: true))
            var intake = EventIntake(limit: Limits.value)
            for event in one.events.prefix(2) {
                var value: [UInt8] = []
                try event.withUnsafeBytes {
                    try intake.take($0, stamp: EventIntake.Stamp(by: nil, atMs: 0, base: .none), into: &value)
                }
                try await live.log.append([LogAppend(key: Array("todo".utf8), value: value)])
            }
            let answer = try await publish(live, events, key: "k")
            #expect(try rows(answer).map(\.outcome) == ["applied", "applied", "applied"])
            #expect(try rows(answer).map(\.seq) == [0, 1, 4])
            #expect(try rows(answer) == rows(try await publish(live, events, key: "k")))
            let lines = String(decoding: try await live.get("/v1/streams/todo/snapshot").body, as: UTF8.self)
            #expect(lines.contains(#""consumed":3"#))
        }
    }

    @Test("where two gateways get one key at once, one content counts, and both answers are true")
    func twoGateways() async throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: "reel-keys-\(UUID().uuidString)").path
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let log = try MemoryLog(partitions: 1)
        var settings = SnapshotSettings(folder: folder)
        settings.reachMs = 600_000
        let (logger, metrics) = (Logger(threshold: .error), Metrics())
        let node = try SnapshotNode(log: log, settings: settings, logger: logger, metrics: metrics)
        let gateways = try (0..<2).map { _ in try LiveGateway(log, state: node) { $0.outcomeMs = 600_000 } }
        for live in gateways { try await live.started() }
        for round in 0..<20 {
            let isSame = round % 2 == 0
            async let first = publish(gateways[0], [insert("\(round)", "a"), insert("y\(round)")], key: "k\(round)")
            async let second = publish(
                gateways[1],
                [insert("\(round)", isSame ? "a" : "b"), insert("y\(round)")],
                key: "k\(round)"
            )
            let answers = try await [first, second]
            let path = "/v1/streams/todo/objects/task/\(round)"
            let object = String(decoding: try await gateways[0].get(path).body, as: UTF8.self)
            if isSame {
                #expect(answers.map(\.status) == [200, 200])
                let (one, other) = (try rows(answers[0]), try rows(answers[1]))
                #expect(one == other)
            } else {
                let codes = try answers.map { try code($0) }
                #expect(codes.sorted() == ["200 ", "409 conflict"], "round \(round)")
                #expect(object.contains(codes[0] == "200 " ? #"["a","# : #"["b","#), "\(object)")
            }
        }
        for live in gateways { await live.end() }
        node.close()
        log.close()
    }

    @Test("two users with one key do not meet")
    func users() async throws {
        let keys = try KeyFile()
        try await StateWay.each({ $0.node.tokens = keys.gate }) { live in
            let tokens = try ["ann", "bob"].map { try keys.token($0, publish: "*") }
            let ann = try await publish(live, [insert("1", "a")], key: "k", token: tokens[0])
            let bob = try await publish(live, [insert("1", "b")], key: "k", token: tokens[1])
            #expect(ann.status == 200 && bob.status == 200)
            #expect(try rows(ann)[0].site != rows(bob)[0].site)
            #expect(try rows(bob).map(\.outcome) == ["applied"])
            #expect(try rows(try await publish(live, [insert("1", "a")], key: "k", token: tokens[0])) == rows(ann))
        }
    }

    @Test("after the horizon a key is new: the same request counts again")
    func afterTheHorizon() async throws {
        try await StateWay.each { live in
            let first = try await publish(live, [noop], key: "k")
            let site = Site(high: 9, low: 9)
            for block in 0..<70 {
                let events = (0..<1_000).map { EventText.sent("noop", site, block * 1_000 + $0).text }
                #expect(try await publish(live, events, query: "?outcome=0").status == 200)
            }
            let again = try await publish(live, [noop], key: "k")
            #expect(again.status == 200)
            #expect(try rows(again).map(\.outcome) == ["applied"])
            #expect(try rows(again)[0].seq == 70_001)
            #expect(try rows(again)[0].site == rows(first)[0].site)
        }
    }

    @Test("a key is 1 to 255 printable ASCII characters, given once, for events without a site")
    func keys() async throws {
        try await LiveGateway.with { live in
            for key in ["", String(repeating: "k", count: 256), "caf\u{e9}"] {
                let answer = try await publish(live, [noop], key: key)
                #expect(try code(answer) == "400 bad_request", "\(key)")
                #expect((try answer.members["detail"] as? String)?.contains("Idempotency-Key") == true)
            }
            let named = EventText.sent("noop", Site(high: 1, low: 1), 0).text
            #expect(try code(try await publish(live, [named], key: "k")) == "400 bad_request")
            let twice: HTTPHeaders = ["idempotency-key": "a", "Idempotency-Key": "a"]
            let body = #"{"events":[\#(noop)]}"#
            #expect(try code(try await live.ask("POST", path, body: body, headers: twice)) == "400 bad_request")
            let sync = #"{"epoch":"\#(live.log.epoch)","after":-1}"#
            let pulled = try await live.ask(
                "POST",
                "/v1/streams/todo/sync",
                body: sync,
                headers: ["idempotency-key": "k"]
            )
            #expect(try code(pulled) == "400 bad_request")
            let huge = try await publish(live, [noop], key: String(repeating: "k", count: 1 << 20))
            #expect(try code(huge) == "431 too_large")
            #expect(try live.log.bounds(0).last == -1)
            for key in ["k", String(repeating: "k", count: 255), "\"8e03978e-40d5-43dd-bc93-6894a57f9324\"", "a b~"] {
                #expect(try await publish(live, [noop], key: key).status == 200, "\(key)")
            }
        }
    }

    @Test("the site of a key is the same for all gateways and builds")
    func derivation() throws {
        let stream = try #require(StreamName("todo"))
        let key = try #require(try IdempotencyKey(["idempotency-key": "order-17"]))
        #expect(key.site(of: nil, in: stream).description == "00e7b754-8570-80ba-8e60-1d46695cd7c4")
        #expect(key.site(of: "ann", in: stream).description == "b1306470-08c0-8e5a-8b49-d6118f7b849c")
    }
}
