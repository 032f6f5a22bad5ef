import Foundation

/// How much more than usual the random tests do: `REEL_EFFORT`, 1 at least.
package let effort = max(1, environmentNumber("REEL_EFFORT").flatMap { Int(exactly: $0) } ?? 1)

/// What random tests start from.
package enum TestSeed {
    /// `REEL_SEED`, which plays a run again.
    package static let given = environmentNumber("REEL_SEED")

    /// The one that is given, or else this one.
    package static func given(or standard: UInt64) -> UInt64 { given ?? standard }

    /// The one that is given, or another one for each run of the tests; printed once.
    package static let value: UInt64 = {
        let seed = given ?? UInt64(UInt32.random(in: 0 ... .max))
        print("REEL_SEED=\(seed)")
        return seed
    }()
}

/// SplitMix64 (Steele, Lea, Flood 2014): the same numbers from the same seed, everywhere.
package struct SeededNumbers: RandomNumberGenerator {
    private var state: UInt64

    package init(_ seed: UInt64) { state = seed }

    package mutating func next() -> UInt64 {
        state &+= 0x9e37_79b9_7f4a_7c15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xbf58_476d_1ce4_e5b9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94d0_49bb_1331_11eb
        return mixed ^ (mixed >> 31)
    }

    /// True once in so many times.
    package mutating func oneIn(_ count: Int) -> Bool { Int.random(in: 0..<count, using: &self) == 0 }

    /// From 0 up to below this; 0 if there is nothing below.
    package mutating func below(_ bound: Int) -> Int { bound > 0 ? Int.random(in: 0..<bound, using: &self) : 0 }

    /// One of them; there is at least one.
    package mutating func pick<C: Collection>(_ choices: C) -> C.Element { choices.randomElement(using: &self)! }
}

private func environmentNumber(_ name: String) -> UInt64? {
    ProcessInfo.processInfo.environment[name].flatMap { UInt64($0) }
}
