import Testing

@testable import ReelNet

/// Tests the client address that a proxy names: trusted addresses, the PROXY protocol, and `Forwarded`.
@Suite struct ProxyTests {
    @Test(
        "ranges",
        arguments: [
            ("10.0.0.0/8", "10.255.0.1", true), ("10.0.0.0/8", "11.0.0.1", false), ("127.0.0.1", "127.0.0.1", true),
            ("127.0.0.1, ::1", "::1", true), ("::/0", "9.9.9.9", true), ("0.0.0.0/0", "::2", false),
            ("192.168.1.128/25", "192.168.1.127", false), ("192.168.1.128/25", "192.168.1.200", true),
            ("fd00::/8", "fd12:3456::1", true), ("10.0.0.0/8", "::ffff:10.1.2.3", true), ("", "127.0.0.1", false),
        ]
    ) func ranges(list: String, host: String, isIn: Bool) throws {
        #expect(try AddressRanges(parsing: list).contains(SocketAddress(host, port: 1)) == isIn)
    }

    @Test(
        "no ranges",
        arguments: [
            "10.0.0.0/33", "10.0.0.0/+8", "localhost", "10.0.0/8", "::/129", "10.0.0.0/-1", "10.0.0.0/8/8", "a,b",
            "1.2.3.4/٣",
        ]
    )
    func noRanges(list: String) {
        #expect(throws: NetError.self) { try AddressRanges(parsing: list) }
    }

    private static let binary: [UInt8] =
        [
            13, 10, 13, 10, 0, 13, 10, 81, 85, 73, 84, 10, 0x21, 0x11, 0, 12, 203, 0, 113, 7, 10, 0, 0, 1, 0x1f, 0x90,
            0, 80,
        ]

    @Test("a header is read however it comes") func aHeaderIsRead() throws {
        let client = try SocketAddress("203.0.113.7", port: 8_080)
        let line = Array("PROXY TCP4 203.0.113.7 10.0.0.1 8080 80\r\n".utf8)
        for header in [Self.binary, line] {
            for count in 1..<header.count { #expect(ProxyHeader.read(Array(header[..<count])) == .incomplete) }
            #expect(ProxyHeader.read(header + Array("GET /".utf8)) == .header(client, length: header.count))
        }
        var own = Self.binary
        own[12] = 0x20
        #expect(ProxyHeader.read(own) == .header(nil, length: 28))
        #expect(ProxyHeader.read(Array("PROXY UNKNOWN\r\n".utf8)) == .header(nil, length: 15))
        #expect(ProxyHeader.read(Array("GET / HTTP/1.1".utf8)) == .absent)
        #expect(ProxyHeader.read([22, 3, 1]) == .absent, "a TLS handshake")
    }

    @Test(
        "a malformed line",
        arguments: [
            "PROXY TCP4 203.0.113.7 10.0.0.1 80\r\n", "PROXY TCP6 203.0.113.7 10.0.0.1 1 2\r\n",
            "PROXY TCP4 a b 1 2\r\n",
            "PROXY TCP4 1.1.1.1 1.1.1.1 1 2\n", "PROXY " + String(repeating: "x", count: 200),
            "PROXY TCP4 localhost 1.1.1.1 1 2\r\n", "PROXY TCP4 1.1.1.1 1.1.1.1 70000 2\r\n",
        ]
    ) func aMalformedLine(line: String) {
        #expect(ProxyHeader.read(Array(line.utf8)) == .malformed)
    }

    @Test("malformed binary headers") func malformedBinaryHeaders() {
        for (place, value) in [(12, UInt8(0x31)), (12, 0x22), (14, 0xff), (15, 4)] {
            var header = Self.binary
            header[place] = value
            #expect(ProxyHeader.read(header) == .malformed, "\(place): \(value)")
        }
    }

    @Test(
        "forwarded",
        arguments: [
            ("for=203.0.113.7", "203.0.113.7"), ("for=\"203.0.113.7:99\";proto=https", "203.0.113.7"),
            ("For=\"[2001:db8::7]:99\"", "2001:db8::7"), ("for=6.6.6.6, for=203.0.113.7, for=10.0.0.9", "203.0.113.7"),
            // A quoted value may contain text of the client.
            (#"proto=http;host="a,for=9.9.9.9";for=1.2.3.4"#, "1.2.3.4"),
            (#"host="x;for=9.9.9.9";for=1.2.3.4"#, "1.2.3.4"),
            (#"for=1.2.3.4;host="a\",for=9.9.9.9""#, "1.2.3.4"),
            (#"for="[::ffff:127.0.0.9]""#, nil), ("for=0.0.0.0", nil), (#"for="[::]""#, nil),
            ("for=127.0.0.1", nil), ("for=\"[::1]\", for=10.0.0.9", "10.0.0.9"), ("for=unknown", nil),
            ("for=_hidden, for=10.0.0.9", "10.0.0.9"), ("proto=https", nil), ("for=[::1", nil),
            ("for=\u{202e}1.1.1.1", nil), ("", nil),
            (Array(repeating: "for=6.6.6.6", count: 100).joined(separator: ",") + ",for=7.7.7.7", "7.7.7.7"),
        ]
    ) func forwarded(value: String, client: String?) throws {
        let headers: HTTPHeaders = ["forwarded": value]
        let proxies = try AddressRanges(parsing: "10.0.0.0/8")
        #expect(ForwardedHeader.client(in: headers, trusting: proxies)?.host == client)
    }
}
