import ReelCore
import Testing

@testable import ReelNet
@testable import ReelNode

/// The streams whose digests a client asks for.
@Suite struct DigestsRequestTests {
    private func request(_ body: String, readable: String? = nil) throws(Problem) -> DigestsRequest {
        var headers: HTTPHeaders = [:]
        if let readable { headers.add(StreamPattern.readableHeader, readable) }
        let head = HTTPRequestHead(method: "POST", target: "/v1/digests", host: "a", headers: headers, isOld: false)
        return try DigestsRequest(HTTPRequest(head: head, body: Array(body.utf8)))
    }

    private func body(_ streams: String) -> String { #"{"epoch":"000000000000009f","streams":[\#(streams)]}"# }

    @Test("a request has an epoch and the streams with their seqs, and is forwarded unchanged")
    func streams() throws {
        let text = body(#"{"stream":"todo","seq":812},{"stream":"notes","seq":-1}"#)
        let found = try request(text, readable: "todo,n*")
        #expect(found.epoch == Epoch(0x9f) && found.streams.map(\.seq) == [812, -1])
        #expect(found.streams.map(\.stream.description) == ["todo", "notes"])
        #expect(found.readable?.map(\.description) == ["todo", "n*"])
        #expect(String(decoding: found.body, as: UTF8.self) == text)
        let most = (0..<1_000).map { #"{"stream":"s\#($0)","seq":0}"# }.joined(separator: ",")
        #expect(try request(body(most)).streams.count == 1_000)
    }

    @Test("a bad body is refused as a whole")
    func badBodies() throws {
        let more = (0...1_000).map { #"{"stream":"s\#($0)","seq":0}"# }.joined(separator: ",")
        let bad: [(String, ErrorCode)] = [
            ("", .badJSON), ("[]", .badRequest), ("{}", .badRequest), (body(""), .limit), (body(more), .limit),
            (body(#"{"stream":"todo"}"#), .badRequest), (body(#"{"seq":1}"#), .badRequest),
            (body(#"{"stream":"~todo","seq":1}"#), .badStream), (body(#"{"stream":"","seq":1}"#), .badStream),
            (body(#"{"stream":"todo","seq":-2}"#), .badRequest), (body(#""todo""#), .badRequest),
            (#"{"streams":[{"stream":"todo","seq":1}]}"#, .badRequest),
            (#"{"epoch":"x","streams":[{"stream":"todo","seq":1}]}"#, .badRequest),
        ]
        for (text, code) in bad {
            let problem = #expect(throws: Problem.self, "\(text.prefix(80))") { try request(text) }
            #expect(problem?.status == 400 && problem?.code == code, "\(text.prefix(80))")
        }
        #expect(try #require(throws: Problem.self) { try request(body(more)) }.limit == 1_000)
        #expect(throws: Problem.self) {
            try request(body(#"{"stream":"todo","seq":1}"#), readable: "a b")
        }
    }
}
