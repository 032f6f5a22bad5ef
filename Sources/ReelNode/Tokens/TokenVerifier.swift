import ReelCore
import ReelNet

/// Verifies tokens: JWTs (RFC 7519) in compact form with EdDSA, ES256 or HS256. It makes all other checks before it
/// verifies the signature. The key determines the algorithm, never the token. It has no clock and no file.
public struct TokenVerifier: Sendable {
    /// The trusted keys.
    public var keys: TokenKeys
    /// The required issuer (`iss`); nil: any.
    public var issuer: String?
    /// The required audience (`aud`); nil: any.
    public var audience: String?
    /// The maximum time that `nbf` and `iat` may be in the future, since clocks differ; in seconds.
    private static let leeway: Int64 = 60

    /// A verifier with these keys, for tokens of any issuer and audience.
    public init(_ keys: TokenKeys) {
        self.keys = keys
    }

    /// Returns the rights that the token gives at `now`, in seconds since 1970.
    public func verify(_ token: [UInt8], now: Int64) throws(TokenRefusal) -> TokenGrant {
        try claim(token, now: now).verified()
    }

    /// A token that has passed all checks except that of its signature, which is much more expensive than the others.
    struct Claim {
        fileprivate let grant: TokenGrant
        fileprivate let key: SignatureKey
        fileprivate let parts: TokenParts

        /// Verifies the signature and returns the rights that the token gives.
        func verified() throws(TokenRefusal) -> TokenGrant {
            guard key.verifies(parts.signature, of: parts.signed) else {
                throw TokenRefusal("the token's signature is not of the key that it names", .signature)
            }
            return grant
        }
    }

    /// Makes all checks of a token except that of its signature.
    func claim(_ token: [UInt8], now: Int64) throws(TokenRefusal) -> Claim {
        let parts = try TokenParts(token)
        let key = try key(parts)
        let grant = try grant(parts.claims, now)
        guard parts.signature.count == key.signatureCount else {
            throw TokenRefusal("the token's signature has \(parts.signature.count) bytes, not \(key.signatureCount)")
        }
        return Claim(grant: grant, key: key, parts: parts)
    }

    /// Returns the rights that a token claims, unverified. Nil if the token cannot be read, or has no valid subject or
    /// no expiry.
    public static func claims(of token: [UInt8]) -> TokenGrant? {
        guard let claims = try? TokenParts(token).claims, let expiresAt = claims.expiresAt,
            let subject = claims.subject, UserName.isValid(subject)
        else { return nil }
        return claims.grant(subject: subject, expiresAt: expiresAt)
    }

    private func key(_ parts: TokenParts) throws(TokenRefusal) -> SignatureKey {
        guard let found = keys.key(parts.keyID) else {
            throw TokenRefusal(
                parts.keyID == nil
                    ? "the token names no key (`kid`), and the key file has several; expected is one of those"
                    : "the key (`kid`) that the token names is not in the key file; expected is a token of one of its"
                        + " keys: make it with such a key, or add the public half of its own key to the file",
                .unknownKey
            )
        }
        guard parts.algorithm == found.key.algorithm.rawValue else {
            throw TokenRefusal("the token's \"alg\" is not the \(found.key.algorithm.rawValue) of its key")
        }
        return found.key
    }

    private func grant(_ claims: TokenClaims, _ now: Int64) throws(TokenRefusal) -> TokenGrant {
        guard let expiresAt = claims.expiresAt else { throw TokenRefusal("the token has no \"exp\"") }
        guard now < expiresAt else { throw TokenRefusal("the token expired \(now - expiresAt) s ago", .expired) }
        for (name, from) in [("nbf", claims.notBefore), ("iat", claims.issuedAt)] {
            if let from, from > now + Self.leeway {
                throw TokenRefusal("the token's \"\(name)\" is \(from - now) s ahead", .notYet)
            }
        }
        if let issuer, claims.issuer.map({ $0.utf8.elementsEqual(issuer.utf8) }) != true {
            throw TokenRefusal("the token's \"iss\" is not the one expected")
        }
        if let audience, !claims.audience.contains(where: { $0.utf8.elementsEqual(audience.utf8) }) {
            throw TokenRefusal("the token's \"aud\" has not the one expected")
        }
        guard let subject = claims.subject, UserName.isValid(subject) else {
            throw TokenRefusal("the token has no \"sub\" of \(UserName.rule)")
        }
        guard claims.hasStreams else { throw TokenRefusal("the token has no \"reel\", which says what it gives") }
        return claims.grant(subject: subject, expiresAt: expiresAt)
    }
}
