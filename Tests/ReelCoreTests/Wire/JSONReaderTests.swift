import ReelCore
import TestSupport
import Testing

/// Tests the error messages of the JSON reader.
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

    @Test(
        "the reader rejects a word that is not a JSON literal",
        arguments: ["nonsense", "tru", "nullable", "fAlse", "NULL"]
    )
    func rejectsUnknownWords(_ text: String) {
        let first = text.prefix(1)
        #expect(error(text) == ReelError(.badJSON, "found '\(first)' at byte 0, expected a value"))
    }

    @Test(
        "another value than is expected is named",
        arguments: [
            ("null", "null"), ("true,", "a boolean"), (" false", "a boolean"), ("[n", "an array"), ("-", "a number"),
        ]
    )
    func anotherValueThanIs(_ text: String, _ name: String) {
        let place = text.hasPrefix(" ") ? 1 : 0
        #expect(error(text) == ReelError(.badFrame, "found \(name) at byte \(place), expected an object"))
    }
}

/// Tests that an object with two equal keys is rejected, however the keys are escaped.
@Suite struct UniqueKeysTests {
    private func error(_ text: String) -> ReelError? {
        Array(text.utf8).withUnsafeBytes { bytes in
            var reader = JSONReader(bytes, levels: 3, shape: .badFrame)
            do throws(ReelError) {
                try reader.skip()
                return nil
            } catch {
                return error
            }
        }
    }

    @Test("a key twice is found, sorted or not, escaped or not, in any depth, and both places are named")
    func twice() {
        let message = #"found the member "a" twice, at bytes 2 and "#
        #expect(error(#"{"a":1,"a":2}"#) == ReelError(.badJSON, message + "8"))
        #expect(error(#"{"a":1,"b":2,"\u0061":3}"#) == ReelError(.badJSON, message + "14"))
        #expect(error(#"{"\u0061":1,"0":2,"a":3}"#) == ReelError(.badJSON, message + "19"))
        #expect(error(#"[{"b":{"z":0,"é":1,"y":2,"\u00e9":3}}]"#)?.code == .badJSON)
        #expect(error(#"{"b":{"a":1},"a":{"b":2,"a":3}}"#) == nil)
        #expect(error(#"{"\ud83d\ude00":1,"a":2,"😀":3}"#)?.code == .badJSON)
        #expect(error(#"{"e\u0301":1,"a":2,"é":3}"#) == nil, "names are compared by their bytes, not normalised")
    }

    @Test("the reader rejects an object with random keys exactly if two keys are equal")
    func rejectsEqualKeys() {
        var numbers = SeededNumbers(TestSeed.value)
        for _ in 0..<2_000 * effort {
            var (texts, names, repeats) = ([String](), Set<String>(), false)
            for _ in 0..<numbers.below(40) {
                var (name, text) = ("", "")
                for _ in 0..<numbers.below(4) {
                    let letter = numbers.pick(["a", "b", "é", "\u{1}"])
                    let code = letter.unicodeScalars.first!.value
                    let hex = String(code, radix: 16)
                    let escape = "\\u" + String(repeating: "0", count: 4 - hex.count) + hex
                    name += letter
                    text += letter == "\u{1}" || numbers.oneIn(2) ? escape : letter
                }
                repeats = !names.insert(name).inserted || repeats
                texts.append("\"\(text)\":0")
            }
            let object = "{" + texts.joined(separator: ",") + "}"
            #expect((error(object) != nil) == repeats, "\(object)")
        }
    }
}
