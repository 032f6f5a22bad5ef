import ReelNet
import Testing

@Suite struct HTTPOriginTests {
    @Test(
        "is read",
        arguments: [
            ("http://reel.example", "http://reel.example:80"),
            ("https://reel.example", "https://reel.example:443"),
            ("https://reel.example:8443/", "https://reel.example:8443"),
            ("reel.example:7350", "http://reel.example:7350"),
            ("http://[::1]", "http://[::1]:80"),
            ("[::1]:7350", "http://[::1]:7350"),
        ]
    ) func isRead(_ url: String, _ whole: String) {
        #expect(HTTPOrigin(url)?.description == whole)
    }

    @Test(
        "an invalid URL gives no origin",
        arguments: [
            "", "reel.example", "7350", "[::1]", "http://", "http:///", "https://:443", "reel.example:",
            "reel.example:x",
            "reel.example:65536", "ws://reel.example:7350", "http://reel.example:7350/path", "http://a@b:7350",
            "http:// b:7350", "://b:7350",
        ]
    ) func rejectsInvalidURL(_ url: String) {
        #expect(HTTPOrigin(url) == nil)
    }
}
