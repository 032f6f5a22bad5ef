import Foundation

/// The random numbers of a property test: printed by a failure, repeated by `REEL_SEED`, more of them by `REEL_EFFORT`.
struct Seeded: CustomStringConvertible {
    let seed: UInt64

    init() {
        let given = ProcessInfo.processInfo.environment["REEL_SEED"].flatMap { UInt64($0) }
        seed = given ?? UInt64.random(in: 1 ... .max)
    }

    var generator: SplitMix64 { SplitMix64(state: seed) }

    var description: String { "REEL_SEED=\(seed)" }

    /// So many rounds, times the effort.
    func count(_ rounds: Int) -> Int {
        let effort = ProcessInfo.processInfo.environment["REEL_EFFORT"].flatMap { Double($0) } ?? 1
        return max(1, Int(Double(rounds) * effort))
    }
}

/// Sebastiano Vigna's generator: small, and the same everywhere.
struct SplitMix64: RandomNumberGenerator {
    var state: UInt64

    mutating func next() -> UInt64 {
        state &+= 0x9e37_79b9_7f4a_7c15
        var mixed = state
        mixed = (mixed ^ mixed >> 30) &* 0xbf58_476d_1ce4_e5b9
        mixed = (mixed ^ mixed >> 27) &* 0x94d0_49bb_1331_11eb
        return mixed ^ mixed >> 31
    }
}
