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

/// Tests the parts of an answer to `POST …/events` that report more than durability.
@Suite(.timeLimit(.minutes(15))) struct PublishAnswerTests {
    private let site = Site(high: 1, low: 1)
    private let path = "/v1/streams/todo/events"

    private func event(_ op: Int, _ type: String, _ members: String = "", of site: Site? = nil) -> String {
        EventText.sent(type, site ?? self.site, op, members).text
    }

    private let insert = #""model":"m","id":"a","fields":{"n":1}"#

    private func publish(
        _ live: LiveGateway,
        _ events: String...,
        query: String = "",
        token: String? = nil
    ) async throws -> HTTPResponse {
        let body = #"{"epoch":"\#(live.log.epoch)","events":[\#(events.joined(separator: ","))]}"#
        let headers: HTTPHeaders = token.map { ["authorization": "Bearer \($0)"] } ?? [:]
        return try await live.ask("POST", path + query, body: body, headers: headers)
    }

    /// Returns the outcomes in an answer or a problem.
    private func outcomes(_ answer: HTTPResponse) throws -> [String?] {
        try #require(try answer.members["acks"] as? [[String: Any]]).map { $0["outcome"] as? String }
    }

    @Test("a publish answer contains each event's outcome by default and the number of rejected events")
    func outcomesByDefault() async throws {
        try await StateWay.each { live in
            let update = event(1, "update", #""model":"m","id":"b","fields":{"n":1}"#)
            let answer = try await publish(live, event(0, "insert", insert), update)
            #expect(answer.status == 200)
            #expect(try outcomes(answer) == ["applied", "rejected(no_object)"])
            #expect(try answer.members["rejected"] as? Int == 1)
            let sound = try await publish(live, event(2, "noop"))
            #expect(try outcomes(sound) == ["applied"])
            #expect(try sound.members["rejected"] == nil)
            let off = try await publish(live, event(3, "noop"), query: "?outcome=0")
            #expect(off.status == 200)
            #expect(try outcomes(off) == [nil])
            #expect(try off.members["no_outcome"] == nil)
        }
    }

    @Test("a publish of which nothing had an effect is refused with the code, and names its acks")
    func allRejected() async throws {
        try await StateWay.each { live in
            let update = event(0, "update", #""model":"m","id":"b","fields":{"n":1}"#)
            let answer = try await publish(live, update, event(1, "delete", #""model":"m","id":"c""#))
            let members = try answer.members
            #expect(answer.status == 409 && members["code"] as? String == "no_object" && members["index"] as? Int == 0)
            #expect(try outcomes(answer) == ["rejected(no_object)", "rejected(no_object)"])
            #expect(try live.log.bounds(0).last == 1)
        }
    }

    @Test(
        "an op after a gap is refused, alone and among others, and a copy of the last op is a duplicate",
        arguments: ["", "?outcome=1"]
    )
    func notConsumed(query: String) async throws {
        try await StateWay.each { live in
            func refusal(_ events: String) async throws -> [String] {
                let body = #"{"epoch":"\#(live.log.epoch)","events":[\#(events)]}"#
                let answer = try await live.ask("POST", path + query, body: body)
                let members = try answer.members
                #expect(answer.status == 409 && answer.headers["content-type"] == "application/problem+json")
                let words = try outcomes(answer).map { $0 ?? "-" }
                return ["\(members["code"] ?? "")", "\(members["index"] ?? "")"] + words
            }
            let ahead = try await refusal(event(5, "insert", insert))
            #expect(ahead == ["gap", "0", "gap"])
            let mixed = try await refusal(
                event(0, "insert", insert) + "," + event(1, "noop", of: Site(high: 2, low: 1))
            )
            #expect(mixed == ["gap", "1", "applied", "gap"])
            let last = event(1, "noop", #""last":true"#)
            let first = try await publish(live, last, query: query)
            let second = try await publish(live, last, query: query)
            #expect(first.status == 200 && second.status == 200)
            #expect(try outcomes(second) == ["duplicate"])
        }
    }

    @Test("a node names the first copy of a duplicate and reports different content as a conflict")
    func firstCopies() async throws {
        try await StateWay.each { live in
            let base = #","base":-1"#
            _ = try await publish(
                live,
                event(0, "insert", insert + base),
                event(1, "delete", #""model":"m","id":"z""# + base)
            )
            let again = try await publish(live, event(1, "delete", #""model":"m","id":"z""# + base))
            #expect(again.status == 200)
            #expect(try outcomes(again) == ["duplicate"])
            let ack = try #require(try again.members["acks"] as? [[String: Any]]).first
            let first = try #require(ack?["first"] as? [String: Any])
            #expect(first["seq"] as? Int == 1 && first["outcome"] as? String == "rejected(no_object)")
            // The record is appended without the gateway, as another gateway may do it.
            let value = EventText.logged("noop", site, 0, at: 1)
            let seq = try #require(try await live.log.append([LogAppend("todo", value.text)]).first)
            let acked = #"{"site":"\#(site)","op":0,"seq":\#(seq)}"#
            let body = #"{"epoch":"\#(live.log.epoch)","acks":[\#(acked)]}"#
            let answer = try await live.ask("POST", "/v1/streams/todo/outcomes", body: body)
            #expect(answer.status == 200)
            #expect(try outcomes(answer) == ["conflict"])
        }
    }

    @Test("a publish without a snapshot node returns only acks, or an error if outcomes are required")
    func noNode() async throws {
        try await LiveGateway.with(MemoryLog(partitions: 1)) { live in
            let answer = try await publish(live, event(0, "insert", insert))
            #expect(answer.status == 200)
            #expect(try outcomes(answer) == [nil])
            let reason = try #require(try answer.members["no_outcome"] as? [String: Any])
            #expect(reason["code"] as? String == "node_behind" && reason["detail"] is String)
            let required = try await publish(live, event(1, "noop"), query: "?outcome=1")
            #expect(required.status == 503)
            #expect(try required.members["code"] as? String == "node_behind")
            #expect(try required.members["epoch"] as? String == "\(live.log.epoch)")
            #expect(try outcomes(required) == [nil])
        }
    }

    @Test("a hung node costs one second where another one has the outcome, and is asked last from then on")
    func hungBeside() async throws {
        let log = try MemoryLog(partitions: 1)
        let acks = #"{"acks":[{"site":"\#(site)","op":0,"seq":0,"outcome":"applied"}]}"#
        let (hung, well) = (try FakeNode(nil), try FakeNode(HTTPResponse(status: 200, body: Array(acks.utf8))))
        try log.announce(hung.announcement(as: "hung"))
        try log.announce(well.announcement(as: "well"))
        try await LiveGateway.with(log, { $0.node.announceMs = 20 }) { live in
            for name in ["hung", "well"] { try await live.cluster(contains: name) }
            for op in 0..<6 {
                let answer = try await publish(live, event(op, "noop"), query: "?outcome=1")
                #expect(answer.status == 200)
                #expect(try outcomes(answer) == ["applied"])
            }
            #expect(try well.asked == 6)
            // Without a record of its silence, the gateway would ask it first for every second question.
            #expect(try hung.asked < 3)
        }
    }

    @Test("one op twice with other content in one request is the fault of the second, for good")
    func contradiction() async throws {
        try await LiveGateway.with(MemoryLog(partitions: 1)) { live in
            let answer = try await publish(live, event(0, "insert", insert), event(0, "noop"))
            let members = try answer.members
            #expect(answer.status == 400 && members["code"] as? String == "bad_event" && members["index"] as? Int == 1)
            #expect(members["retry_ms"] == nil)
        }
    }

    @Test("a snapshot node that does not answer costs a bounded time, and then it is left alone")
    func hungNode() async throws {
        let log = try MemoryLog(partitions: 1)
        let hung = try FakeNode(nil)
        try log.announce(hung.announcement(as: "silent"))
        try await LiveGateway.with(
            log,
            { settings in
                settings.outcomeMs = 50
                settings.node.announceMs = 20
            }
        ) { live in
            try await live.cluster(contains: "silent")
            let answer = try await publish(live, event(0, "insert", insert))
            #expect(answer.status == 200)
            #expect(try outcomes(answer) == [nil])
            #expect(try answer.members["no_outcome"] != nil)
            #expect(try hung.asked == 1)
            #expect(try await publish(live, event(1, "noop")).members["no_outcome"] != nil)
            #expect(try hung.asked == 1, "it was not asked again")
        }
    }

    @Test("without a snapshot node too, what the records of the gateway prove is refused before it is appended")
    func provenByTheRing() async throws {
        let keys = try KeyFile()
        try await LiveGateway.with(MemoryLog(partitions: 1), { $0.node.tokens = keys.gate }) { live in
            let (ann, bob) = (try keys.token("ann", publish: "*"), try keys.token("bob", publish: "*"))
            func code(_ event: String, _ token: String) async throws -> String? {
                let answer = try await publish(live, event, token: token)
                return answer.status == 200 ? nil : try answer.members["code"] as? String
            }
            #expect(try await code(event(0, "noop"), ann) == nil)
            #expect(try await code(event(1, "noop"), bob) == "foreign")
            #expect(try await code(event(1, "noop", #""last":true"#), ann) == nil)
            #expect(try await code(event(2, "noop"), ann) == "gap")
            #expect(try await code(event(1, "noop", #""last":true"#), ann) == nil, "a copy is no gap")
            #expect(try await code(event(1, "noop"), ann) == "conflict")
            #expect(try live.log.bounds(0).last == 2)
            // The gateway appends an event that comes over a socket. The device's own fold rejects it, and
            // the device then takes a new site.
            let socket = try await live.open(["authorization": "Bearer \(bob)"])
            socket.send(#"{"t":"hello","client":"test/1"}"#)
            let todo = try #require(StreamName("todo"))
            socket.send(.publish(.init(stream: todo, events: [Array(event(2, "noop").utf8)])))
            #expect(try await socket.nextAck().acks.map(\.seq) == [3])
        }
    }

    @Test("events come with what became of them, in an answer and as messages, in their order")
    func outcomesOfEvents() async throws {
        try await StateWay.each { live in
            let update = event(1, "update", #""model":"m","id":"b","fields":{"n":1}"#)
            _ = try await publish(live, event(0, "insert", insert), update, query: "?outcome=0")
            let stream = try live.reader(path + "?outcome=1", ["accept": "text/event-stream"])
            let plain = try live.reader(path, ["accept": "text/event-stream"])
            _ = try await publish(live, event(5, "noop"), event(0, "insert", insert), query: "?outcome=0")
            let words = ["applied", "rejected(no_object)", "gap", "duplicate"]
            let answer = try await live.get(path + "?outcome=1")
            #expect(answer.status == 200)
            let events = try #require(try answer.members["events"] as? [[String: Any]])
            #expect(events.map { $0["outcome"] as? String } == words)
            #expect(events.map { $0["seq"] as? Int } == [0, 1, 2, 3])
            #expect(String(decoding: answer.body, as: UTF8.self).contains(#"{"seq":0,"outcome":"applied","at":"#))
            let messages = try await stream.messages("all of them") { $0.flatMap(\.seqs) == [0, 1, 2, 3] }
            for (seq, word) in words.enumerated() {
                #expect(messages.contains { $0.data.contains(#"{"seq":\#(seq),"outcome":"\#(word)","#) }, "\(word)")
            }
            let others = try await plain.messages("all of them") { $0.flatMap(\.seqs) == [0, 1, 2, 3] }
            #expect(!others.contains { $0.data.contains("outcome") }, "whoever did not ask is not told")
            let bare = try await live.get(path + "?outcome=0")
            #expect(!String(decoding: bare.body, as: UTF8.self).contains("outcome"))
            #expect(try await live.get(path + "?outcome=2").status == 400)
        }
    }

    @Test("without a snapshot node no event is delivered without the outcome that was asked for")
    func noOutcomeNoEvent() async throws {
        try await LiveGateway.with(MemoryLog(partitions: 1)) { live in
            _ = try await publish(live, event(0, "insert", insert))
            let answer = try await live.get(path + "?outcome=1")
            #expect(answer.status == 503)
            #expect(try answer.members["code"] as? String == "node_behind")
            let stream = try live.reader(path + "?outcome=1", ["accept": "text/event-stream"])
            let messages = try await stream.messages("the reason") { $0.last?.event == "problem" }
            #expect(messages.count == 1 && messages[0].data.contains("node_behind"))
        }
    }

    @Test("an event from before the node's index is unknown, and later ones are not")
    func beforeTheIndex() async throws {
        try await StateWay.each({ _ in }, node: { $0.keptEvents = 2 }) { live in
            for op in 0..<6 { _ = try await publish(live, event(op, "noop"), query: "?outcome=1") }
            let answer = try await live.get(path + "?outcome=1")
            let events = try #require(try answer.members["events"] as? [[String: Any]])
            let words = events.compactMap { $0["outcome"] as? String }
            #expect(words.count == 6 && words.first == "unknown" && words.last == "applied", "\(words)")
        }
    }

    @Test("a token without the right to read can publish and receives the reason for missing outcomes")
    func publishesWithoutReadRight() async throws {
        let keys = try KeyFile()
        try await StateWay.each({ $0.node.tokens = keys.gate }) { live in
            let writer = try keys.token(read: "none", publish: "*")
            let answer = try await publish(live, event(0, "insert", insert), token: writer)
            #expect(answer.status == 200)
            #expect((try answer.members["no_outcome"] as? [String: Any])?["code"] as? String == "forbidden")
            #expect(try await publish(live, event(1, "noop"), query: "?outcome=1", token: writer).status == 403)
            let other = try keys.token("bob", publish: "*")
            let foreign = try await publish(live, event(1, "noop"), token: other)
            #expect(foreign.status == 409)
            #expect(try foreign.members["code"] as? String == "foreign")
        }
    }
}
