import Foundation
package import ReelBase

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

/// The generator of the tests: the same numbers for the same seed on every machine.
package typealias SeededNumbers = SeededGenerator

extension SeededGenerator {
    package init(_ seed: UInt64) { self.init(seed: seed) }

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
