import Foundation
package import Testing

/// Waits until `condition` holds; fails the test after a generous time.
package func eventually(
    _ what: String,
    seconds: Double = 100,
    at location: SourceLocation = #_sourceLocation,
    _ condition: () async throws -> Bool
) async throws {
    let end = ContinuousClock.now + .seconds(seconds)
    while try await !condition() {
        guard ContinuousClock.now < end else {
            Issue.record("never happened: \(what)", sourceLocation: location)
            throw CancellationError()
        }
        try await Task.sleep(for: .milliseconds(2))
    }
}

/// How much more work than usual the tests do: `REEL_EFFORT`.
package let effort = max(1, ProcessInfo.processInfo.environment["REEL_EFFORT"].flatMap { Int($0) } ?? 1)

/// Numbers that a printed seed gives again: `REEL_SEED`.
package struct SeededNumbers: RandomNumberGenerator {
    private var state: UInt64

    package init(_ test: String) {
        let seed =
            ProcessInfo.processInfo.environment["REEL_SEED"].flatMap { UInt64($0) } ?? UInt64.random(in: 0...UInt64.max)
        print("\(test): REEL_SEED=\(seed)")
        state = seed
    }

    package mutating func next() -> UInt64 {
        state &+= 0x9e37_79b9_7f4a_7c15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xbf58_476d_1ce4_e5b9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94d0_49bb_1331_11eb
        return mixed ^ (mixed >> 31)
    }
}
