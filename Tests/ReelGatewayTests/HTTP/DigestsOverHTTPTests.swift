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

/// The digests of many streams in one request, from a node in the process and from another one.
@Suite(.timeLimit(.minutes(15))) struct DigestsOverHTTPTests {
    private func ask(
        _ live: LiveGateway,
        _ streams: [(String, Int)],
        epoch: Epoch? = nil,
        _ headers: HTTPHeaders = [:]
    ) async throws -> HTTPResponse {
        let entries = streams.map { #"{"stream":"\#($0.0)","seq":\#($0.1)}"# }.joined(separator: ",")
        let body = #"{"epoch":"\#(epoch ?? live.log.epoch)","streams":[\#(entries)]}"#
        return try await live.ask("POST", "/v1/digests", body: body, headers: headers)
    }

    private func entries(_ answer: HTTPResponse) throws -> [[String: Any]] {
        try #require(try answer.members["streams"] as? [[String: Any]])
    }

    private func code(_ entry: [String: Any]) -> String? { (entry["error"] as? [String: Any])?["code"] as? String }

    /// Publishes an event to each stream, and waits until the node has folded the last one.
    private func publish(_ names: [String], _ live: LiveGateway, _ headers: HTTPHeaders = [:]) async throws {
        for name in names {
            let body = #"{"events":[{"type":"insert","model":"m","id":"a","fields":{"n":1}}]}"#
            let target = "/v1/streams/\(name)/events?outcome=1"
            #expect(try await live.ask("POST", target, body: body, headers: headers).status == 200)
        }
    }

    @Test("one request says of each stream up to which seq which digest is right")
    func digests() async throws {
        try await StateWay.each { live in
            try await publish(["todo", "notes"], live)
            let answer = try await ask(live, [("notes", 0), ("todo", 0), ("never", -1), ("todo", 9)])
            #expect(answer.status == 200 && answer.headers["content-type"] == "application/json")
            #expect(try answer.members["epoch"] as? String == "\(live.log.epoch)")
            let found = try entries(answer)
            #expect(found.map { $0["stream"] as? String } == ["notes", "todo", "never", "todo"])
            #expect(found.prefix(3).map { $0["seq"] as? Int } == [1, 1, 1])
            #expect(found.prefix(3).map { $0["consumed"] as? Int } == [1, 1, 0])
            #expect(found.allSatisfy { $0["next"] == nil } && code(found[3]) == "node_behind")
            for entry in found.prefix(3) {
                let name = try #require(entry["stream"] as? String)
                let snapshot = try await live.get("/v1/streams/\(name)/snapshot")
                let last = String(decoding: snapshot.body, as: UTF8.self).split(separator: "\n").last
                let digest = try #require(entry["digest"] as? String)
                #expect(last?.contains(#""digest":"\#(digest)""#) == true)
            }
        }
    }

    @Test("a bad question is refused before another node is asked")
    func badQuestions() async throws {
        try await StateWay.each { live in
            try await publish(["todo"], live)
            #expect(try await ask(live, []).status == 400)
            #expect(try await ask(live, (0...1_000).map { ("s\($0)", 0) }).status == 400)
            #expect(try await ask(live, (0..<1_000).map { ("s\($0)", 0) }).status == 200)
            #expect(try await ask(live, [("~todo", 0)]).status == 400)
            let media: HTTPHeaders = ["content-type": "text/plain"]
            #expect(try await ask(live, [("todo", 0)], media).status == 415)
            #expect(try await ask(live, [("todo", 0)], epoch: Epoch(7)).status == 409)
            #expect(try await live.get("/v1/digests").status == 405)
            #expect(try await live.ask("POST", "/v1/digests?all=1", body: "{}").status == 400)
            let behind = try await ask(live, [("todo", 99), ("notes", 99)])
            #expect(behind.status == 503, "no stream has a digest: another node may have one")
        }
    }

    @Test("a token gets the digests of the streams that it gives, and one that gives none is refused")
    func rights() async throws {
        let keys = try KeyFile()
        try await StateWay.each({ $0.node.tokens = keys.gate }) { live in
            func bearer(_ token: String) -> HTTPHeaders { ["authorization": "Bearer \(token)"] }
            let all = bearer(try keys.token(publish: "*"))
            try await publish(["todo-1", "other"], live, all)
            #expect(try await ask(live, [("todo-1", 0)]).status == 401)
            #expect(try entries(try await ask(live, [("todo-1", 0), ("other", 0)], all)).map(code) == [nil, nil])
            // The other node of this test has no keys: the gateway tells it what the token gives.
            let narrow = bearer(try keys.token(read: "todo-*", publish: "*"))
            let found = try entries(try await ask(live, [("other", 0), ("todo-1", 0)], narrow))
            #expect(found.map(code) == ["forbidden", nil])
        }
    }

    @Test("a client that holds its share of the answers in the making gets `overloaded`")
    func limits() async throws {
        try await StateWay.each({ _ in }, node: { $0.openResponses = 0 }) { live in
            let answer = try await ask(live, [("todo", -1)])
            #expect(answer.status == 503 && answer.headers["retry-after"] == "1")
            #expect(try answer.members["code"] as? String == "overloaded")
        }
    }
}
