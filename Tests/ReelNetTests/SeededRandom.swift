import Foundation

/// How much more than usual the random tests do: `REEL_EFFORT`, 1 by default.
let effort = ProcessInfo.processInfo.environment["REEL_EFFORT"].flatMap(Int.init) ?? 1

/// SplitMix64. The seed is printed, and `REEL_SEED` sets it.
struct SeededRandom: RandomNumberGenerator {
    private var state: UInt64

    static func printed(_ function: String = #function) -> SeededRandom {
        let seed =
            ProcessInfo.processInfo.environment["REEL_SEED"].flatMap(UInt64.init) ?? UInt64.random(in: 0...UInt64.max)
        print("\(function): REEL_SEED=\(seed)")
        return SeededRandom(state: seed)
    }

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ mixed >> 30) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ mixed >> 27) &* 0x94D0_49BB_1331_11EB
        return mixed ^ mixed >> 31
    }
}
