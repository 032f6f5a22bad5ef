import ReelCore
import ReelNet

/// Makes tokens that `TokenVerifier` accepts.
public struct TokenMint: Sendable {
    /// The key that signs.
    public var key: TokenKey
    /// The issuer (`iss`); nil: the token has none.
    public var issuer: String?
    /// The audience (`aud`); nil: the token has none.
    public var audience: String?

    /// A mint with this key.
    public init(_ key: TokenKey) {
        self.key = key
    }

    /// Returns a token with the rights of `grant`, issued at `now`, in seconds since 1970. Nil if the key has no secret
    /// half.
    public func token(_ grant: TokenGrant, now: Int64) -> String? {
        var header = JSONObjectWriter()
        header.member("alg", key.key.algorithm.rawValue)
        header.member("kid", key.id)
        header.member("typ", "JWT")
        var claims = JSONObjectWriter()
        claims.member("iss", issuer)
        claims.member("aud", audience)
        claims.member("sub", grant.subject)
        claims.member("iat", now)
        claims.member("exp", grant.expiresAt)
        claims.member("reel") { bytes in
            var streams = JSONObjectWriter()
            streams.member("read", grant.read) { $0.append(quoted: $1.description) }
            streams.member("publish", grant.publish) { $0.append(quoted: $1.description) }
            // A node of an older build refuses a token with a right that it does not know.
            if !grant.inspect.isEmpty { streams.member("inspect", grant.inspect) { $0.append(quoted: $1.description) } }
            if !grant.admin.isEmpty { streams.member("admin", grant.admin) { $0.append(quoted: $1.description) } }
            bytes += streams.finish()
        }
        let signed = Base64URL.encode(header.finish()) + "." + Base64URL.encode(claims.finish())
        return key.key.signature(of: Array(signed.utf8)).map { signed + "." + Base64URL.encode($0) }
    }
}
