import Foundation

/// The factor for the number of random cases in tests: `REEL_EFFORT`, at least 1.
package let effort = max(1, environmentNumber("REEL_EFFORT").flatMap { Int(exactly: $0) } ?? 1)

/// The seeds of random tests.
package enum TestSeed {
    /// The value of `REEL_SEED`, which repeats an earlier run; nil if the variable is not set.
    package static let given = environmentNumber("REEL_SEED")

    /// Returns `given`, or `standard` if `given` is nil.
    package static func given(or standard: UInt64) -> UInt64 { given ?? standard }

    /// The seed of this run: `given`, or a random number if `given` is nil. The first use prints it.
    package static let value: UInt64 = {
        let seed = given ?? UInt64(UInt32.random(in: 0 ... .max))
        print("REEL_SEED=\(seed)")
        return seed
    }()
}

/// A generator of random numbers that are the same for the same seed on every machine: SplitMix64 (Steele, Lea, Flood
/// 2014).
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

    /// Returns true with a probability of 1 in `count`.
    package mutating func oneIn(_ count: Int) -> Bool { Int.random(in: 0..<count, using: &self) == 0 }

    /// Returns a number from 0 to `bound` − 1, or 0 if `bound` is not positive.
    package mutating func below(_ bound: Int) -> Int { bound > 0 ? Int.random(in: 0..<bound, using: &self) : 0 }

    /// Returns a random element of a collection that is not empty.
    package mutating func pick<C: Collection>(_ choices: C) -> C.Element { choices.randomElement(using: &self)! }
}

private func environmentNumber(_ name: String) -> UInt64? {
    ProcessInfo.processInfo.environment[name].flatMap { UInt64($0) }
}
