/// A cache of tokens with a verified signature. It has two generations: when the younger one is full, the older one is
/// dropped.
struct VerifiedTokens: Sendable {
    private static let generationMax = 2_048

    private var young: [String: TokenGrant] = [:]
    private var old: [String: TokenGrant] = [:]
    /// The number of times that the cache was emptied.
    private(set) var generation = 0

    /// Returns the grant of a cached token that has not expired at `now`, in seconds since 1970; nil: not cached.
    mutating func grant(_ token: String, now: Int64) -> TokenGrant? {
        guard let grant = young[token] ?? old[token], now < grant.expiresAt else { return nil }
        if young[token] == nil { keep(token, grant) }
        return grant
    }

    /// Empties the cache, since the keys have changed.
    mutating func forget() {
        (young, old) = ([:], [:])
        generation += 1
    }

    mutating func keep(_ token: String, _ grant: TokenGrant) {
        if young.count >= Self.generationMax { (old, young) = (young, [:]) }
        young[token] = grant
    }
}
