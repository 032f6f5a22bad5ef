import Foundation

/// SplitMix64: the same numbers from the same seed, everywhere.
struct SeededRandom: RandomNumberGenerator {
    private var state: UInt64

    init(_ seed: UInt64) {
        state = seed
    }

    mutating func next() -> UInt64 {
        state &+= 0x9e37_79b9_7f4a_7c15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xbf58_476d_1ce4_e5b9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94d0_49bb_1331_11eb
        return mixed ^ (mixed >> 31)
    }

    /// True once in so many times.
    mutating func oneIn(_ count: Int) -> Bool { Int.random(in: 0..<count, using: &self) == 0 }

    /// One of them.
    mutating func pick<C: Collection>(_ choices: C) -> C.Element { choices.randomElement(using: &self)! }
}

/// What random tests start from: `REEL_SEED`, or another number each time, printed once.
enum TestSeed {
    static let value: UInt64 = {
        let given = ProcessInfo.processInfo.environment["REEL_SEED"].flatMap { UInt64($0) }
        let seed = given ?? UInt64.random(in: 0...UInt64(UInt32.max))
        print("REEL_SEED=\(seed)")
        return seed
    }()

    /// How much more work than usual: `REEL_EFFORT`.
    static let effort = max(1, ProcessInfo.processInfo.environment["REEL_EFFORT"].flatMap { Int($0) } ?? 1)
}
