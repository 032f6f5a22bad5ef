import ReelCore
import ReelNet
import Testing

@testable import ReelNode

@Suite struct RouterTests {
    enum Endpoint { case events, publish, object, objectByQuery }

    let router: Router<Endpoint> = {
        var router = Router<Endpoint>()
        router.add("GET", "/v1/streams/{stream}/events", query: ["after", "limit"], .events)
        router.add("POST", "/v1/streams/{stream}/events", .publish)
        router.add("POST", "/v1/streams/{stream}/sync", .publish)
        router.add("GET", "/v1/streams/{stream}/objects/{model}/{id}", .object)
        router.add("GET", "/v1/streams/{stream}/objects", query: ["model", "id"], .objectByQuery)
        return router
    }()

    func match(
        _ method: String,
        _ segments: String...,
        parameters: [(name: String, value: String)] = []
    ) throws(Problem) -> Router<Endpoint>.Match {
        try router.match(method: method, segments: segments, parameters: parameters)
    }

    @Test("method and path choose the endpoint") func methodAndPathChoose() throws {
        let get = try match("GET", "v1", "streams", "todo", "events", parameters: [("after", "5")])
        #expect(get.endpoint == .events)
        #expect(get.path == ["stream": "todo"])
        #expect(get.query == ["after": "5"])
        #expect(try match("POST", "v1", "streams", "todo", "events").endpoint == .publish)
    }

    @Test("head leads where get leads and nowhere else") func headLeadsWhereGet() throws {
        let head = try match("HEAD", "v1", "streams", "todo", "events", parameters: [("after", "5")])
        #expect(head.endpoint == .events && head.query == ["after": "5"])
        #expect { try match("HEAD", "v1", "streams", "todo", "sync") } throws: { ($0 as? Problem)?.allow == ["POST"] }
    }

    @Test("a node rejects an invalid stream name with the full naming rule", arguments: ["~a", "..", "a b"])
    func invalidStreamName(
        _ name: String
    ) throws {
        let found = try match("GET", "v1", "streams", name, "events")
        #expect { try found.stream } throws: { error in
            error as? Problem == Problem(.badStream, "found '\(name)', expected \(StreamName.rule)")
        }
    }

    @Test("a slash inside a segment stays there") func aSlashInsideA() throws {
        let found = try match("GET", "v1", "streams", "todo", "objects", "a/b", "c d")
        #expect(found.path == ["stream": "todo", "model": "a/b", "id": "c d"])
    }

    @Test("a node answers a wrong method with the allowed methods") func allowedMethods() {
        #expect { try match("PUT", "v1", "streams", "todo", "events") } throws: { error in
            let problem = error as? Problem
            return problem?.status == 405 && problem?.allow == ["GET", "HEAD", "POST"]
                && problem?.response.headers["allow"] == "GET, HEAD, POST"
        }
    }

    @Test("an unknown path and an empty segment are not found") func anUnknownPathAnd() {
        #expect { try match("GET", "v1", "nothing") } throws: { ($0 as? Problem)?.code == .notFound }
        #expect { try match("GET", "v1", "streams", "", "events") } throws: { ($0 as? Problem)?.code == .notFound }
    }

    @Test("unknown and doubled parameters are refused") func unknownAndDoubledParameters() {
        let doubled = [(name: "after", value: "1"), (name: "after", value: "1")]
        for parameters in [doubled, [(name: "affter", value: "1")]] {
            #expect { try match("GET", "v1", "streams", "todo", "events", parameters: parameters) } throws: {
                ($0 as? Problem)?.status == 400
            }
        }
    }
}
