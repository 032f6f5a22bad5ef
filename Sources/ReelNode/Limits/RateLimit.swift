/// How much each payer may take in a time. What was not used is saved for that time once.
public struct RateLimit<Payer: Hashable & Sendable>: Sendable {
    /// The nanoseconds that each unit costs its payer.
    private let unitNs: Int64
    /// The nanoseconds that a payer saves at most.
    private let savedNs: Int64
    /// The moment until which each payer's time is used up; entries in the past are removed.
    private var takenNs: [Payer: Int64] = [:]

    /// So much in so many milliseconds; 0: there is no limit.
    public init(_ most: Int, inMs ms: Int64 = 1_000) {
        savedNs = ms * 1_000_000
        unitNs = most > 0 ? max(1, savedNs / Int64(most)) : 0
    }

    /// Takes so much for a payer, or says after how many milliseconds it may be taken. One who was quiet may take
    /// anything at once, and waits longer then.
    public mutating func take(_ count: Int, of payer: Payer, nowMs: Int64) -> Int64? {
        guard unitNs > 0, count > 0 else { return nil }
        let nowNs = nowMs * 1_000_000
        let startNs = max(nowNs, takenNs[payer] ?? nowNs)
        let endNs = startNs + Int64(count) * unitNs
        guard startNs == nowNs || endNs <= nowNs + savedNs else {
            return max(1, min(startNs - nowNs, endNs - nowNs - savedNs) / 1_000_000)
        }
        takenNs[payer] = endNs
        return nil
    }

    /// What was taken was not used.
    public mutating func giveBack(_ count: Int, of payer: Payer) {
        takenNs[payer]? -= Int64(count) * unitNs
    }

    /// Forgets who was quiet for long enough.
    public mutating func tick(nowMs: Int64) {
        guard !takenNs.isEmpty else { return }
        takenNs = takenNs.filter { $0.value > nowMs * 1_000_000 }
    }
}
