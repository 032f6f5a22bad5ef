/// Runs with seeds. `REEL_SEED` repeats one seed, and `REEL_EFFORT` scales the number of runs.
package enum Seeds {
    /// Runs `body` with `count` seeds.
    package static func run(_ count: Int, _ body: (UInt64) throws -> Void) rethrows {
        if let seed = TestSeed.given { return try body(seed) }
        for seed in TestSeed.value..<TestSeed.value + UInt64(count * effort) {
            do {
                try body(seed)
            } catch {
                print("REEL_SEED=\(seed) failed")
                throw error
            }
        }
    }
}

extension Seeds {
    /// Runs `body` with `count` seeds, one after the other.
    package static func runAsync(_ count: Int, _ body: (UInt64) async throws -> Void) async throws {
        var seeds: [UInt64] = []
        run(count) { seeds.append($0) }
        for seed in seeds {
            do {
                try await body(seed)
            } catch {
                print("REEL_SEED=\(seed) failed")
                throw error
            }
        }
    }
}
