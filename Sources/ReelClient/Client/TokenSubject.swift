internal import ReelCore

/// The subject of a token, read without a check of the signature, because only a node has the keys for that.
package enum TokenSubject {
    /// The longest token that a node accepts, in bytes.
    private static let tokenBytesMax = 8 << 10

    /// Returns the `sub` of a JWT in compact form. Returns nil if the text is no such token, or names no valid user.
    package static func read(_ token: String) -> String? {
        guard token.utf8.count <= tokenBytesMax else { return nil }
        let parts = token.utf8.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        guard parts.count == 3, let claims = Base64URL.decode(parts[1]) else { return nil }
        var subject: String?
        do throws(ReelError) {
            try claims.lend { (claims) throws(ReelError) in
                var reader = JSONReader(claims, levels: 16, shape: .unauthorized)
                try reader.object { (reader, name) throws(ReelError) in
                    if name.string == "sub" { subject = try reader.string() } else { try reader.skip() }
                }
                try reader.end()
            }
        } catch {
            return nil
        }
        return subject.flatMap { UserName.isValid($0) ? $0 : nil }
    }
}
