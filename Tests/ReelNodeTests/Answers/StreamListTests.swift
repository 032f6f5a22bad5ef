import ReelCore
import Testing

@testable import ReelNet
@testable import ReelNode

/// Tests which streams a list contains, by its parameters and the token.
@Suite struct StreamListTests {
    private func request(_ query: String) throws(Problem) -> StreamListRequest {
        var router = Router<Int>()
        router.addStreamList(0)
        let head = HTTPRequestHead(
            method: "GET",
            target: "/v1/streams\(query)",
            host: "a",
            headers: [:],
            isOld: false
        )
        return try StreamListRequest(try router.match(head), head)
    }

    @Test("a stream list request has a prefix, a name to start after, and a limit")
    func parameters() throws {
        let plain = try request("")
        #expect(plain == StreamListRequest() && plain.limit == 100 && plain.target == "/v1/streams?limit=100")
        let full = try request("?prefix=todo-&after=todo-7&limit=1000")
        #expect(full.prefix == "todo-" && full.after == "todo-7" && full.limit == 1_000)
        #expect(full.target == "/v1/streams?prefix=todo-&after=todo-7&limit=1000")
        #expect(try request("?prefix=&after=") == plain, "an empty text names nothing")
        #expect(try request("?prefix=..").prefix == "..", "a name can go on with a letter")
    }

    @Test(
        "a bad parameter is refused, and the refusal names it",
        arguments: [
            "?limit=0", "?limit=x", "?limit=1001", "?limit=-1", "?limit=", "?prefix=a%00", "?prefix=a%1B",
            "?prefix=%C3%A9",
            "?prefix=~reel", "?prefix=a%20b", "?prefix=a/b", "?after=a%0A", "?after=..", "?after=~a", "?other=1",
            "?prefix=a&prefix=b", "?prefix=" + String(repeating: "a", count: 129),
        ]
    )
    func badParameters(query: String) {
        let problem = #expect(throws: Problem.self) { try request(query) }
        #expect(problem?.status == 400)
        #expect(problem?.detail.contains("found") == true)
    }

    private func access(_ patterns: [String]) throws -> Access {
        let read = try patterns.map { try #require(StreamPattern($0)) }
        return Access(TokenGrant(subject: "ann", expiresAt: 9_999_999_999, read: read, publish: []))
    }

    private func question(_ prefix: String = "") -> StreamListRequest {
        var question = StreamListRequest()
        question.prefix = prefix
        return question
    }

    private func ranges(_ patterns: [String], _ prefix: String = "") throws -> [String] {
        try question(prefix).ranges(for: access(patterns)).map { $0.text + ($0.isPrefix ? "*" : "") }
    }

    @Test("a token gives ranges of names: in name order, and none of them twice")
    func rangesOfTokens() throws {
        #expect(try question("a").ranges(for: Access(nil)) == [NameRange(prefix: "a")])
        #expect(try ranges(["*"]) == ["*"] && ranges(["*"], "todo-") == ["todo-*"])
        #expect(try ranges(["b", "a*", "ab*", "a", "abc", "c", "b"]) == ["a*", "b", "c"])
        #expect(try ranges(["todo-7", "todo-70", "todo-8*", "other"], "todo-") == ["todo-7", "todo-70", "todo-8*"])
        #expect(try ranges(["todo-*"], "todo-7") == ["todo-7*"] && ranges(["todo-*"], "x").isEmpty)
        #expect(try ranges(["ab", "a*"]) == ["a*"])
        #expect(throws: Problem.self) { try question().ranges(for: access([])) }
        var passed = question()
        passed.readable = [try #require(StreamPattern("b*"))]
        #expect(try passed.ranges(for: Access(nil)) == [NameRange(prefix: "b")], "a node without keys")
        #expect(try passed.ranges(for: access(["c"])).map(\.text) == ["c"], "a node that has checked the token")
    }

    @Test("the bounds of a name range include every name of the range and no other")
    func bounds() throws {
        let ranges = [NameRange(prefix: "a"), NameRange(name: try #require(StreamName("a"))), NameRange(prefix: "a-")]
        let names = [
            "a", "a-", "a.", "a0", "aA", "a_", "aa", "a~", "a" + String(repeating: "~", count: 127), "b", "A", "_",
        ]
        for range in ranges {
            for name in names {
                let isIn = range.isPrefix ? name.hasPrefix(range.text) : name == range.text
                #expect((range.lower <= name && name < range.upper) == isIn, "\(name) in \(range)")
                if isIn { #expect(name <= range.last) }
            }
            #expect(StreamName(range.last) != nil, "a page can begin behind it")
        }
    }
}
