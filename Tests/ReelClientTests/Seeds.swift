import Foundation

@testable import ReelClient

/// Seeded runs: `REEL_SEED` plays one seed again, `REEL_EFFORT` scales their number.
enum Seeds {
    static func run(_ count: Int, _ body: (UInt64) throws -> Void) rethrows {
        let environment = ProcessInfo.processInfo.environment
        if let seed = environment["REEL_SEED"].flatMap(UInt64.init) {
            print("seed \(seed)")
            return try body(seed)
        }
        let effort = environment["REEL_EFFORT"].flatMap(Int.init) ?? 1
        let first = UInt64.random(in: 0..<1 << 32)
        print("seeds from \(first), \(count * effort) of them")
        for seed in first..<first + UInt64(count * effort) { try body(seed) }
    }
}

extension Seeds {
    static func runAsync(_ count: Int, _ body: (UInt64) async throws -> Void) async throws {
        var seeds: [UInt64] = []
        run(count) { seeds.append($0) }
        for seed in seeds { try await body(seed) }
    }
}
