import Foundation
import ReelCore
import ReelLog
import ReelNet
import ReelNode
import TestSupport
import Testing

@testable import ReelGateway

/// Tests the list of streams, from a node in the gateway's process and from another node.
@Suite(.timeLimit(.minutes(15))) struct StreamListOverHTTPTests {
    private let site = Site(high: 1, low: 1)

    private func names(_ answer: HTTPResponse) throws -> [String] {
        try #require(try answer.members["streams"] as? [[String: Any]]).compactMap { $0["stream"] as? String }
    }

    /// Publishes an event to each stream, and waits until the node has folded the last one.
    private func publish(_ names: [String], _ live: LiveGateway, _ headers: HTTPHeaders = [:]) async throws {
        for name in names {
            let body = #"{"events":[{"type":"insert","model":"m","id":"a","fields":{"n":1}}]}"#
            let answer = try await live.ask(
                "POST",
                "/v1/streams/\(name)/events?outcome=1",
                body: body,
                headers: headers
            )
            #expect(answer.status == 200, "\(String(decoding: answer.body, as: UTF8.self))")
        }
    }

    @Test("streams come by name, page by page, with their figures")
    func pages() async throws {
        try await StateWay.each { live in
            try await publish(["todo-2", "todo-1", "notes", "todo-10"], live)
            let all = try await live.get("/v1/streams")
            #expect(all.status == 200 && all.headers["content-type"] == "application/json")
            #expect(try names(all) == ["notes", "todo-1", "todo-10", "todo-2"])
            #expect(try all.members["next"] == nil && all.members["epoch"] as? String == "\(live.log.epoch)")
            let notes = try #require(try (all.members["streams"] as? [[String: Any]])?.first)
            #expect(notes["partition"] as? Int == 0 && notes["objects"] as? Int == 1 && notes["bytes"] as? Int == 9)
            #expect(notes["seq"] as? Int == 2 && notes["sites"] as? Int == 0 && notes["at"] is Int, "\(notes)")
            let first = try await live.get("/v1/streams?prefix=todo-&limit=2")
            #expect(try names(first) == ["todo-1", "todo-10"] && first.members["next"] as? String == "todo-10")
            let rest = try await live.get("/v1/streams?prefix=todo-&limit=2&after=todo-10")
            #expect(try names(rest) == ["todo-2"] && rest.members["next"] == nil)
            #expect(try names(try await live.get("/v1/streams?after=zzz")).isEmpty)
            #expect(try names(try await live.get("/v1/streams?prefix=x")).isEmpty)
            let head = try await live.ask("HEAD", "/v1/streams")
            #expect(head.status == 200 && head.headers["content-length"] == "\(all.body.count)")
        }
    }

    @Test("a bad question is refused before another node is asked")
    func badQuestions() async throws {
        try await StateWay.each { live in
            for query in ["limit=0", "limit=x", "limit=1001", "prefix=a%00b", "prefix=%1B[0m", "after=a%0A", "all=1"] {
                let answer = try await live.get("/v1/streams?\(query)")
                #expect(answer.status == 400, "\(query)")
                #expect(answer.headers["content-type"] == "application/problem+json")
                #expect(!answer.body.contains { $0 < 0x20 }, "no control character comes back as it is: \(query)")
            }
            #expect(try await live.ask("POST", "/v1/streams", body: "{}").status == 405)
            #expect(try await live.get("/v1/streams/").status == 404)
        }
    }

    @Test("an answer has the unpublished mark only for a stream without published events")
    func unpublished() async throws {
        try await StateWay.each { live in
            try await publish(["todo"], live)
            for (target, status) in [("snapshot", 200), ("sites", 200), ("objects/m/b", 404)] {
                for method in ["GET", "HEAD"] {
                    let none = try await live.ask(method, "/v1/streams/tood/\(target)")
                    #expect(
                        none.status == status && none.headers["reel-stream"] == "unpublished",
                        "\(method) \(target)"
                    )
                    let known = try await live.ask(method, "/v1/streams/todo/\(target)")
                    #expect(known.status == status && known.headers["reel-stream"] == nil, "\(method) \(target)")
                }
            }
            let object = try await live.get("/v1/streams/tood/objects/m/b")
            #expect(try (object.members["detail"] as? String)?.contains("to which no event was ever published") == true)
            let delta = try await live.get("/v1/streams/tood/delta?after=0&epoch=\(live.log.epoch)")
            #expect(delta.headers["reel-stream"] == "unpublished", "\(delta)")
        }
    }

    @Test("a token lists the streams that it gives to read, and one that gives none lists nothing")
    func rights() async throws {
        let keys = try KeyFile()
        let all = try keys.token(publish: "*")
        try await StateWay.each({ $0.node.tokens = keys.gate }) { live in
            func bearer(_ token: String) -> HTTPHeaders { ["authorization": "Bearer \(token)"] }
            try await publish(["todo-1", "todo-2", "other"], live, bearer(all))
            #expect(try names(try await live.ask("GET", "/v1/streams", headers: bearer(all))).count == 3)
            // The other node of this test has no keys; the gateway sends it the rights of the token.
            let narrow = bearer(try keys.token(read: "todo-*", publish: "*"))
            #expect(try names(try await live.ask("GET", "/v1/streams", headers: narrow)) == ["todo-1", "todo-2"])
            #expect(try names(try await live.ask("GET", "/v1/streams?prefix=o", headers: narrow)).isEmpty)
            let page = try await live.ask("GET", "/v1/streams?limit=1&prefix=todo", headers: narrow)
            #expect(try names(page) == ["todo-1"] && page.members["next"] as? String == "todo-1")
        }
    }
}
