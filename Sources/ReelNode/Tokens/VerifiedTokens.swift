/// Tokens whose signature was right, so that it is not computed again for each request. Bounded: of two generations the
/// older one goes when the younger one is full.
struct VerifiedTokens: Sendable {
    private static let generationMax = 2_048

    private var young: [String: TokenGrant] = [:]
    private var old: [String: TokenGrant] = [:]
    /// How often they were forgotten.
    private(set) var generation = 0

    /// What a token gives that was verified before and holds at this second.
    mutating func grant(_ token: String, now: Int64) -> TokenGrant? {
        guard let grant = young[token] ?? old[token], now < grant.expiresAt else { return nil }
        if young[token] == nil { keep(token, grant) }
        return grant
    }

    /// Forgets all, since the keys have changed.
    mutating func forget() {
        (young, old) = ([:], [:])
        generation += 1
    }

    mutating func keep(_ token: String, _ grant: TokenGrant) {
        if young.count >= Self.generationMax { (old, young) = (young, [:]) }
        young[token] = grant
    }
}
