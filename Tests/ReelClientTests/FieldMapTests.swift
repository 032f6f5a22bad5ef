import TestSupport
import Testing

@testable import ReelClient

/// The order of names.
@Suite struct FieldMapTests {
    @Test("names are in the order of UTF-16, and each is found by its bytes") func order() {
        Seeds.run(500) { seed in
            var random = SeededNumbers(seed)
            let parts = [
                "a", "b", "é", "e\u{301}", "\u{0}", "\u{D7FF}", "\u{E000}", "\u{FFFD}", "😀", "\u{10FFFF}", "字",
            ]
            var map: FieldMap<JSONValue> = [:]
            var expected: [[UInt8]: Int] = [:]
            for number in 0..<30 {
                let name = (0..<random.below(4)).map { _ in random.pick(parts) }.joined()
                if random.oneIn(5) {
                    map[name] = .none
                    expected[Array(name.utf8)] = nil
                } else {
                    map[name] = .some(JSONValue(number))
                    expected[Array(name.utf8)] = number
                }
            }
            let names = expected.keys.map { String(decoding: $0, as: UTF8.self) }
                .sorted { $0.utf16.lexicographicallyPrecedes($1.utf16) }
            #expect(map.names.map { Array($0.utf8) } == names.map { Array($0.utf8) }, "REEL_SEED=\(seed)")
            for (name, number) in expected {
                #expect(map[String(decoding: name, as: UTF8.self)] == JSONValue(number), "REEL_SEED=\(seed)")
            }
        }
    }
}
