/// A token bucket for each payer: units per period, by the generic cell rate algorithm (GCRA). A bucket holds at most
/// the units of one period.
public struct RateLimit<Key: Hashable & Sendable>: Sendable {
    /// The nanoseconds that each unit costs its payer.
    private let unitNs: Int64
    /// The maximum nanoseconds that a payer can save.
    private let savedNs: Int64
    /// The moment until which each payer's time is used up; entries in the past are removed.
    private var takenNs: [Key: Int64] = [:]

    /// A limit of `most` units in a period of `ms` milliseconds; 0 units: no limit.
    public init(_ most: Int, inMs ms: Int64 = 1_000) {
        savedNs = ms * 1_000_000
        unitNs = most > 0 ? max(1, savedNs / Int64(most)) : 0
    }

    /// Takes units for a payer. A payer with a full bucket may take any number at once, and then waits longer.
    ///
    /// - Parameters:
    ///   - count: The number of units.
    ///   - payer: The payer.
    ///   - nowMs: The present time in milliseconds.
    /// - Returns: Nil if the units were taken; otherwise the milliseconds after which the payer may retry.
    public mutating func take(_ count: Int, of payer: Key, nowMs: Int64) -> Int64? {
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

    /// Returns units that a payer took and did not use.
    public mutating func giveBack(_ count: Int, of payer: Key) {
        takenNs[payer]? -= Int64(count) * unitNs
    }

    /// Removes the payers with full buckets.
    public mutating func tick(nowMs: Int64) {
        guard !takenNs.isEmpty else { return }
        takenNs = takenNs.filter { $0.value > nowMs * 1_000_000 }
    }
}
