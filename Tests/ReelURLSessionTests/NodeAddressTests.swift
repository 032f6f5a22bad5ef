import Foundation
import TestSupport
import Testing

@testable import ReelURLSession

#if canImport(ReelNet)
import ReelNet
#endif

/// The addresses of nodes, and their URLs.
@Suite struct NodeAddressTests {
    @Test("an address gives the URLs of its node")
    func urls() throws {
        let plain = try #require(NodeAddress("127.0.0.1:7350"))
        #expect(plain.url("/v1/streams?after=a%20b")?.absoluteString == "http://127.0.0.1:7350/v1/streams?after=a%20b")
        #expect(plain.url("/v1/socket", isSocket: true)?.absoluteString == "ws://127.0.0.1:7350/v1/socket")
        let secure = try #require(NodeAddress("https://reel.example/"))
        #expect(secure.url("/")?.absoluteString == "https://reel.example:443/")
        #expect(secure.url("/", isSocket: true)?.absoluteString == "wss://reel.example:443/")
        #expect(NodeAddress("http://[::1]:80")?.url("/")?.host(percentEncoded: false) == "::1")
        // A target that would change the host.
        #expect(plain.url("@evil.example/") == nil && plain.url("") == nil)
    }

    @Test(
        "a text that is no address is refused",
        arguments: [
            "foo", "ftp://foo:1", "foo:bar", "", "http://a:0", "http://a:65536", "http://a/b", "http://u@a", "a:+1",
        ]
    )
    func refused(text: String) { #expect(NodeAddress(text) == nil) }

    #if canImport(ReelNet)
    @Test("the transports of Linux and of Apple platforms accept the same addresses") func sameAsLinux() throws {
        let parts = [
            "http://", "https://", "ftp://", "a", "reel.example", "[", "]", "::1", ":", "80", "0", "65536", "/", "+",
        ]
        var accepted = 0
        Seeds.run(20_000) { seed in
            var random = SeededNumbers(seed)
            let text = (0...random.below(5)).map { _ in parts[random.below(parts.count)] }.joined()
            let origin = HTTPOrigin(text).flatMap { $0.port > 0 ? $0 : nil }
            let address = NodeAddress(text)
            #expect((address == nil) == (origin == nil), "REEL_SEED=\(seed): \(text)")
            #expect(address?.isSecure == origin?.isSecure, "REEL_SEED=\(seed): \(text)")
            if address != nil { accepted += 1 }
        }
        if TestSeed.given == nil { #expect(accepted > 100) }
    }
    #endif
}
