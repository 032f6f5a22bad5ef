import Testing

@testable import ReelNet

@Suite struct HTTPRequestDecoderTests {
    private static let host = "Host: reel\r\n"

    /// Valid requests, each with the bodies that the decoder must return.
    static let accepted: [(request: String, bodies: [String])] = [
        ("GET / HTTP/1.1\r\n\(host)\r\n", [""]),
        ("\r\nGET / HTTP/1.1\r\n\(host)\r\n", [""]),
        ("GET /a%20b?c=d&e HTTP/1.1\r\nhost:reel:7350\r\n\r\n", [""]),
        ("GET / HTTP/1.1\r\nHost: [::1]:80\r\n\r\n", [""]),
        ("GET / HTTP/1.1\r\nHost: [::1]\r\n\r\n", [""]),
        ("GET / HTTP/1.1\r\nHost: a_b-c.example.:65535\r\n\r\n", [""]),
        ("GET / HTTP/1.1\r\nHost: 127.0.0.1:\r\n\r\n", [""]),
        ("GET / HTTP/1.0\r\n\r\n", [""]),
        ("OPTIONS * HTTP/1.1\r\n\(host)\r\n", [""]),
        ("GET http://reel/a HTTP/1.1\r\n\(host)\r\n", [""]),
        ("GET HTTPS://reel/a HTTP/1.1\r\n\(host)\r\n", [""]),
        ("GET / HTTP/1.1\r\n\(host)X-Empty:\r\nX-Tab:\t v\tw \r\nX-High: \u{e9}\r\n\r\n", [""]),
        ("POST / HTTP/1.1\r\n\(host)Content-Length: 5\r\n\r\nhello", ["hello"]),
        ("POST / HTTP/1.1\r\n\(host)Content-Length: 0\r\n\r\n", [""]),
        ("POST / HTTP/1.1\r\n\(host)Content-Length: 0005\r\n\r\nhello", ["hello"]),
        ("POST / HTTP/1.1\r\n\(host)Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", ["hello"]),
        (
            "POST / HTTP/1.1\r\n\(host)Transfer-Encoding: Chunked\r\n\r\n"
                + "3;a=\"b c\"\r\nhel\r\n02\r\nlo\r\n000\r\nTrailer: x\r\n\r\n", ["hello"]
        ),
        (
            "POST / HTTP/1.1\r\n\(host)Content-Length: 1\r\n\r\naGET /b HTTP/1.1\r\n\(host)\r\n"
                + "POST / HTTP/1.1\r\n\(host)Transfer-Encoding: chunked\r\n\r\nA\r\n0123456789\r\n0\r\n\r\n",
            ["a", "", "0123456789"]
        ),
        ("POST / HTTP/1.1\r\n\(host)Expect: 100-Continue\r\nContent-Length: 2\r\n\r\nhi", ["hi"]),
    ]

    /// Invalid requests, each with the status of their refusal.
    static let refused: [(request: String, status: Int)] = [
        // Host
        ("GET / HTTP/1.1\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost:\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: a b\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: 127.0.0.1:evil.example\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: user:evil.example\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: [evil.example]\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: [127.0.0.1]\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: [::1]evil.example\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: [::1\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: ::1\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: a]\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: :80\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: a:65536\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: a:000080\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: a:80:80\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: a:+80\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: user@a\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: a/b\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: a, b\r\n\r\n", 400),
        ("GET http://other/ HTTP/1.1\r\n\(host)\r\n", 400),
        ("GET https://other/ HTTP/1.1\r\n\(host)\r\n", 400),
        ("GET ws://reel/ HTTP/1.1\r\n\(host)\r\n", 400),
        // Lines
        ("GET / HTTP/1.1\nHost: a\n\n", 400),
        ("GET / HTTP/1.1\r\nHost: a\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: a\rb\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost : a\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\n\(host)X-A: b\r\n c\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\n Host: a\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\n\(host)X-A b\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\n\(host): b\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\n\(host)X(A): b\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\n\(host)X-A: b\u{0}c\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\n\(host)X-A: b\u{7f}c\r\n\r\n", 400),
        ("\r\n\r\nGET / HTTP/1.1\r\n\(host)\r\n", 400),
        ("\u{16}\u{3}\u{1}", 400),
        // Request line
        ("GET /\r\n\(host)\r\n", 400),
        ("GET  / HTTP/1.1\r\n\(host)\r\n", 400),
        ("GET / HTTP/1.1 \r\n\(host)\r\n", 400),
        ("GET\t/ HTTP/1.1\r\n\(host)\r\n", 400),
        ("G(T / HTTP/1.1\r\n\(host)\r\n", 400),
        ("GET a HTTP/1.1\r\n\(host)\r\n", 400),
        ("GET * HTTP/1.1\r\n\(host)\r\n", 400),
        ("GET /a#b HTTP/1.1\r\n\(host)\r\n", 400),
        ("GET /\u{e9} HTTP/1.1\r\n\(host)\r\n", 400),
        ("GET / http/1.1\r\n\(host)\r\n", 400),
        ("GET / HTTP/1.10\r\n\(host)\r\n", 400),
        ("get / HTTP/1.1\r\n\(host)\r\n", 501),
        ("BREW / HTTP/1.1\r\n\(host)\r\n", 501),
        ("CONNECT reel:80 HTTP/1.1\r\n\(host)\r\n", 501),
        ("GET / HTTP/2.0\r\n\(host)\r\n", 505),
        ("GET / HTTP/1.2\r\n\(host)\r\n", 505),
        ("GET / HTTP/0.9\r\n\(host)\r\n", 505),
        // Lengths
        ("POST / HTTP/1.1\r\n\(host)Content-Length: 1\r\nContent-Length: 1\r\n\r\na", 400),
        ("POST / HTTP/1.1\r\n\(host)Content-Length: 1, 1\r\n\r\na", 400),
        ("POST / HTTP/1.1\r\n\(host)Content-Length: +1\r\n\r\na", 400),
        ("POST / HTTP/1.1\r\n\(host)Content-Length: -1\r\n\r\na", 400),
        ("POST / HTTP/1.1\r\n\(host)Content-Length: 0x1\r\n\r\na", 400),
        ("POST / HTTP/1.1\r\n\(host)Content-Length: 1 1\r\n\r\na", 400),
        ("POST / HTTP/1.1\r\n\(host)Content-Length:\r\n\r\na", 400),
        ("POST / HTTP/1.1\r\n\(host)Content-Length: 99999999999999999999999\r\n\r\n", 413),
        ("POST / HTTP/1.1\r\n\(host)Content-Length: 1048577\r\n\r\n", 413),
        ("POST / HTTP/1.1\r\n\(host)Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", 400),
        ("POST / HTTP/1.1\r\n\(host)Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n", 501),
        ("POST / HTTP/1.1\r\n\(host)Transfer-Encoding: gzip, chunked\r\n\r\n", 501),
        ("POST / HTTP/1.1\r\n\(host)Transfer-Encoding: xchunked\r\n\r\n", 501),
        ("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", 400),
        ("POST / HTTP/1.1\r\n\(host)Expect: tea\r\n\r\n", 417),
        // Chunks
        (chunked("\r\n"), 400), (chunked(" 1\r\na\r\n"), 400), (chunked("1 \r\na\r\n"), 400),
        (chunked("-1\r\n"), 400), (chunked("0x1\r\na"), 400), (chunked("g\r\n"), 400), (chunked("1\na\r\n"), 400),
        (chunked("1\r\nab\r\n"), 400), (chunked("1\r\na\n"), 400), (chunked("1\rxa"), 400),
        (chunked("1;\na\r\n"), 400), (chunked("0\r\n bad\r\n\r\n"), 400), (chunked("0\r\na: b\n\r\n"), 400),
        (chunked("0\r\n\rx"), 400), (chunked("FFFFFFFFFFFFFFFF\r\n"), 413), (chunked("7fffffffffffffff\r\n"), 413),
        (chunked("1;" + String(repeating: "e", count: 20_000) + "\r\na\r\n"), 400),
        (chunked(String(repeating: "1;" + String(repeating: "e", count: 100) + "\r\na\r\n", count: 100)), 400),
        (chunked("0\r\n" + String(repeating: "a: b\r\n", count: 2000)), 400),
        (chunked(String(repeating: "40000\r\n" + String(repeating: "z", count: 0x40000) + "\r\n", count: 5)), 413),
    ]

    private static func chunked(_ body: String) -> String {
        "POST / HTTP/1.1\r\n\(host)Transfer-Encoding: chunked\r\n\r\n" + body
    }

    @Test("takes what is right however it is cut", arguments: accepted) func takesWhatIsRight(
        _ request: String,
        _ bodies: [String]
    ) {
        let bytes = Array(request.utf8)
        let whole = decodeRequests([bytes])
        let found = whole.events.compactMap { event -> String? in
            if case .body(let body) = event { String(decoding: body, as: UTF8.self) } else { nil }
        }
        #expect(whole.violation == nil)
        #expect(found == bodies)
        for pieces in allCuts(bytes) { #expect(decodeRequests(pieces) == whole) }
    }

    @Test("refuses what is not however it is cut", arguments: refused) func refusesWhatIsNot(
        _ request: String,
        _ status: Int
    ) {
        let bytes = Array(request.utf8)
        let whole = decodeRequests([bytes])
        #expect(whole.violation?.status == status)
        let cuts =
            bytes.count < 2000
            ? allCuts(bytes)
            : [stride(from: 0, to: bytes.count, by: 999).map { Array(bytes[$0..<min(bytes.count, $0 + 999)]) }]
        for pieces in cuts { #expect(decodeRequests(pieces) == whole) }
    }

    @Test("bounds the head") func boundsTheHead() {
        let long = String(repeating: "a", count: 9000)
        let many = (0..<101).map { "x-\($0): y\r\n" }.joined()
        #expect(status("GET /\(long)") == 414)
        #expect(status("GET / HTTP/1.1\r\n\(Self.host)x: \(long)\r\ny: \(long)\r\n") == 431)
        #expect(status("GET / HTTP/1.1\r\n\(many)") == 431)
    }

    @Test("the decoder accepts no input after a violation") func refusesAfterViolation() {
        var decoder = HTTPRequestDecoder()
        for text in ["\n", "GET / HTTP/1.1\r\n\(Self.host)\r\n"] {
            let bytes = Array(text.utf8)
            #expect(throws: HTTPViolation.self) {
                var position = 0
                _ = try decoder.next(bytes.span, &position)
            }
        }
    }

    /// The limits hold to the byte, for the whole input and for single bytes. A line counts with its CR,
    /// the head with all its line ends.
    @Test("the decoder enforces its line and head limits exactly") func enforcesLimits() {
        var limits = HTTPLimits()
        (limits.line, limits.head) = (40, 80)
        for length in 1...100 {
            let line = "GET /" + String(repeating: "a", count: length) + " HTTP/1.1\r\n"
            for text in [line + "\(Self.host)\r\n", "GET / HTTP/1.1\r\n\(Self.host)x:\(line)\r\n"] {
                let bytes = Array(text.utf8)
                let status = decodeRequests([bytes], limits).violation?.status
                #expect(decodeRequests(bytes.map { [$0] }, limits).violation?.status == status, "\(length)")
                let isLong = text.hasPrefix(line) && line.utf8.count - 1 > limits.line
                #expect(status == (isLong ? 414 : bytes.count > limits.head ? 431 : nil), "\(length)")
            }
        }
    }

    @Test("gives the head as it was") func givesTheHeadAs() throws {
        let text = "GET http://Reel/a%2Fb/%C3%A9?x=1%26&y&z=a=b HTTP/1.1\r\nHOST: reel\r\nX-A: 1\r\nx-a: 2\r\n\r\n"
        let first = try #require(decodeRequests([Array(text.utf8)]).events.first)
        guard case .head(let head, let expectsContinue) = first else {
            Issue.record("no head")
            return
        }
        #expect(!expectsContinue)
        #expect(head.segments == ["a/b", "é"])
        #expect(head.parameters?.map(\.name) == ["x", "y", "z"])
        #expect(head.parameters?.map(\.value) == ["1&", "", "a=b"])
        #expect(head.headers.all("x-a") == ["1", "2"])
        #expect(head.keepsAlive)
    }

    @Test("knows bad percent signs", arguments: ["/%", "/%4", "/%zz", "/%ff", "/?a=%c3"]) func knowsBadPercentSigns(
        _ target: String
    ) throws {
        let bytes = Array("GET \(target) HTTP/1.1\r\n\(Self.host)\r\n".utf8)
        guard case .head(let head, _)? = decodeRequests([bytes]).events.first else {
            Issue.record("no head")
            return
        }
        #expect(head.segments == nil || head.parameters == nil)
    }

    private func status(_ text: String) -> Int? { decodeRequests([Array(text.utf8)]).violation?.status }
}
