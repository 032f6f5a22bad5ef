import Foundation

/// SplitMix64: the same numbers from the same seed, everywhere.
struct Random: RandomNumberGenerator {
    private var state: UInt64

    init(_ seed: UInt64) {
        state = seed
    }

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var z = state
        z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
        z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
        return z ^ (z >> 31)
    }

    /// True once in so many times.
    mutating func oneIn(_ count: Int) -> Bool {
        Int.random(in: 0..<count, using: &self) == 0
    }

    mutating func below(_ bound: Int) -> Int {
        bound > 0 ? Int.random(in: 0..<bound, using: &self) : 0
    }

    mutating func pick<C: RandomAccessCollection>(_ choices: C) -> C.Element {
        choices.randomElement(using: &self)!
    }
}

/// The seed of a test, or `REEL_SEED` where it is set.
func testSeed(_ standard: UInt64) -> UInt64 {
    ProcessInfo.processInfo.environment["REEL_SEED"].flatMap { UInt64($0) } ?? standard
}

/// How much work the tests do: `REEL_EFFORT`, 1 by default.
let effort = ProcessInfo.processInfo.environment["REEL_EFFORT"].flatMap { Int($0) } ?? 1
