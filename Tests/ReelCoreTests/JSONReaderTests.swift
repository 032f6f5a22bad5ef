import ReelCore
import Testing

/// What a reader says of what it does not find.
@Suite struct JSONReaderTests {
    private func error(_ text: String) -> ReelError? {
        Array(text.utf8).withUnsafeBytes { bytes in
            var reader = JSONReader(bytes, levels: 2, shape: .badFrame)
            do throws(ReelError) {
                try reader.object { (reader, _) throws(ReelError) in try reader.skip() }
                return nil
            } catch {
                return error
            }
        }
    }

    @Test(arguments: ["nonsense", "tru", "nullable", "fAlse", "NULL"])
    func aWordThatIsNoneOfJSONsIsNoValue(_ text: String) {
        let first = text.prefix(1)
        #expect(error(text) == ReelError(.badJSON, "found '\(first)' at byte 0, expected a value"))
    }

    @Test(arguments: [
        ("null", "null"), ("true,", "a boolean"), (" false", "a boolean"), ("[n", "an array"), ("-", "a number"),
    ])
    func anotherValueThanIsExpectedIsNamed(_ text: String, _ name: String) {
        let place = text.hasPrefix(" ") ? 1 : 0
        #expect(error(text) == ReelError(.badFrame, "found \(name) at byte \(place), expected an object"))
    }
}
