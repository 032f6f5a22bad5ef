import ReelCore
import ReelNet

/// Checks tokens: JWTs (RFC 7519) in compact form, signed by EdDSA, ES256 or HS256. All that can be refused is refused
/// before the signature is looked at, and the key decides how that is done, never the token. It has no clock and no
/// file.
public struct TokenVerifier: Sendable {
    /// The keys that it believes.
    public var keys: TokenKeys
    /// Who has to have made the token (`iss`); nil: anyone who has a key.
    public var issuer: String?
    /// For whom the token has to be (`aud`); nil: for anyone.
    public var audience: String?
    /// How far a clock that sets `nbf` and `iat` may be ahead, in seconds.
    private static let leeway: Int64 = 60

    /// A verifier of these keys, for tokens of any issuer and audience.
    public init(_ keys: TokenKeys) {
        self.keys = keys
    }

    /// What the token gives at this second of the Unix epoch.
    public func verify(_ token: [UInt8], now: Int64) throws(TokenRefusal) -> TokenGrant {
        try claim(token, now: now).verified()
    }

    /// A token that has passed all checks but that of its signature, which costs much more than the others.
    struct Claim {
        fileprivate let grant: TokenGrant
        fileprivate let key: SignatureKey
        fileprivate let parts: TokenParts

        /// Verifies the signature and returns what the token gives.
        func verified() throws(TokenRefusal) -> TokenGrant {
            guard key.verifies(parts.signature, of: parts.signed) else {
                throw TokenRefusal("the token's signature is not of the key that it names", .signature)
            }
            return grant
        }
    }

    /// Makes all checks of a token but that of its signature.
    func claim(_ token: [UInt8], now: Int64) throws(TokenRefusal) -> Claim {
        let parts = try TokenParts(token)
        let key = try key(parts)
        let grant = try grant(parts.claims, now)
        guard parts.signature.count == key.signatureCount else {
            throw TokenRefusal("the token's signature has \(parts.signature.count) bytes, not \(key.signatureCount)")
        }
        return Claim(grant: grant, key: key, parts: parts)
    }

    /// What a token says that it gives, unproven; nil if it cannot be read, or does not say for whom and how long.
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
