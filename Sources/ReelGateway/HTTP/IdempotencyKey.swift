import ReelCore
import ReelNet
import ReelNode

/// The header `Idempotency-Key` of a publish. The same key and content, sent again, have one effect.
struct IdempotencyKey: Equatable {
    /// The maximum size of a key in bytes.
    static let bytesMax = 255

    private let text: String

    /// Reads the key of a request; nil: it has none. Throws if the key is empty, too long, given twice, or not of
    /// printable ASCII characters.
    init?(_ headers: HTTPHeaders) throws(Problem) {
        let values = headers.all("idempotency-key")
        guard let text = values.first else { return nil }
        guard values.count == 1 else {
            throw Problem(.badRequest, "found Idempotency-Key \(values.count) times, expected it once")
        }
        guard (1...Self.bytesMax).contains(text.utf8.count) else {
            throw Problem(
                .badRequest,
                "found an Idempotency-Key of \(text.utf8.count) bytes, expected 1 to \(Self.bytesMax)"
            )
        }
        guard text.utf8.allSatisfy({ (0x20...0x7e).contains($0) }) else {
            throw Problem(.badRequest, "found an Idempotency-Key with other characters than printable ASCII")
        }
        self.text = text
    }

    /// Returns the site for a request with the key. It is the same for the same user, stream and key, and another one
    /// for any other.
    func site(of subject: String?, in stream: StreamName) -> Site {
        // None of the parts has a zero byte.
        let parts = ["reel-idempotency-key-1", subject ?? "", stream.description, text]
        let hash = SHA256.hash(parts.joined(separator: "\0").utf8)
        let halves = [0, 8].map { start in hash[start..<start + 8].reduce(UInt64(0)) { $0 << 8 | UInt64($1) } }
        return Site.oneRequest(high: halves[0], low: halves[1])
    }
}
