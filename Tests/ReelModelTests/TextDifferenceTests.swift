import ReelClient
import TestSupport
import Testing

@testable import Reel

/// Splices between texts and between bytes.
@Suite struct TextDifferenceTests {
    private func splices(_ old: String, _ new: String, in present: String? = nil) -> [TextSplice] {
        TextDifference.splices(from: old, to: new, in: present ?? old)
    }

    private func edited(_ old: String, _ new: String, in present: String) -> String? {
        FieldOperation.splice(splices(old, new, in: present)).applied(to: .string(present), isAbsentSafe: true)?.string
    }

    @Test("the splice is the smallest one, in scalars") func smallest() {
        #expect(splices("abc", "abc").isEmpty)
        #expect(splices("abc", "abXc") == [TextSplice(at: 2, inserting: "X")])
        #expect(splices("😀abc", "😀ac") == [TextSplice(at: 2, removing: 1)])
        #expect(splices("", "abc") == [TextSplice(at: 0, inserting: "abc")])
        #expect(splices("abc", "") == [TextSplice(at: 0, removing: 3)])
        #expect(splices("aaa", "aaaa") == [TextSplice(at: 3, inserting: "a")])
        #expect(splices("é", "e\u{301}") == [TextSplice(at: 0, removing: 1, inserting: "e\u{301}")])
    }

    @Test("a splice replaces whole grapheme clusters") func clusters() {
        #expect(splices("e\u{301}", "e\u{300}") == [TextSplice(at: 0, removing: 2, inserting: "e\u{300}")])
        #expect(splices("👍", "👍🏽") == [TextSplice(at: 0, removing: 1, inserting: "👍🏽")])
        #expect(splices("a👨‍👩‍👧b", "a👨‍👩‍👦b") == [TextSplice(at: 1, removing: 5, inserting: "👨‍👩‍👦")])
        #expect(splices("a\r\n", "a\r") == [TextSplice(at: 1, removing: 2, inserting: "\r")])
        // Inserting a flag before flags is the same as inserting it behind equal ones.
        #expect(splices("🇩🇪🇫🇷", "🇩🇪🇩🇪🇫🇷") == [TextSplice(at: 2, inserting: "🇩🇪")])
        // Half a flag changes how all later halves pair up.
        let half = splices("🇩🇪🇫🇷x", "🇪🇫🇷x")
        #expect(FieldOperation.splice(half).applied(to: "🇩🇪🇫🇷x", isAbsentSafe: true) == "🇪🇫🇷x")
    }

    @Test("texts of one huge cluster and of many flags take no long time", .timeLimit(.minutes(1))) func huge() {
        let marks = "e" + String(repeating: "\u{301}", count: 300_000)
        #expect(splices(marks, marks + "x") == [TextSplice(at: 300_001, inserting: "x")])
        #expect(splices(marks, "a" + marks) == [TextSplice(at: 0, inserting: "a")])
        let flags = String(repeating: "🇩🇪", count: 20_000)
        let shifted = "🇪" + flags
        let operation = FieldOperation.splice(splices(flags, shifted))
        #expect(operation.applied(to: .string(flags), isAbsentSafe: true) == .string(shifted))
    }

    @Test("an edit of an older text keeps the edit of another writer") func rebased() {
        #expect(edited("one two", "one or two", in: "zero one two") == "zero one or two")
        #expect(edited("one two", "zero one two", in: "one or two") == "zero one or two")
        #expect(edited("one two", "one", in: "one two three") == "one three")
        #expect(edited("abcdef", "abXef", in: "abcYdef") == "abXYef")
        #expect(edited("abcdef", "ef", in: "abcYdef") == "Yef")
        #expect(edited("abcdef", "abXcdef", in: "f") == "Xf")
        #expect(edited("abc", "", in: "") == "")
        #expect(edited("ab", "aXb", in: "aYb") == "aXYb")
        // Both have removed the same part.
        #expect(splices("abc", "ac", in: "ac").isEmpty)
    }

    @Test("a moved splice splits no cluster that another writer has made") func rebasedClusters() {
        #expect(edited("ab", "aXb", in: "a\u{301}b") == "a\u{301}Xb")
        #expect(edited("ab", "b", in: "a\u{301}b") == "a\u{301}b")
    }

    private static let alphabet = [
        "a", "b", " ", "é", "e\u{301}", "\u{301}", "😀", "👨‍👩‍👧", "🇩🇪", "🇩", "\r\n", "\r", "\n", "字", "\u{200D}",
    ]

    private func text(_ random: inout SeededNumbers) -> String {
        (0..<random.below(12)).map { _ in random.pick(Self.alphabet) }.joined()
    }

    /// Returns a text with some parts removed and some inserted.
    private func edit(_ text: String, _ random: inout SeededNumbers) -> String {
        var scalars = Array(text.unicodeScalars)
        for _ in 0..<(1 + random.below(3)) {
            let from = random.below(scalars.count + 1)
            let to = from + random.below(min(4, scalars.count - from) + 1)
            scalars.replaceSubrange(from..<to, with: Array(self.text(&random).unicodeScalars.prefix(4)))
        }
        var view = String.UnicodeScalarView()
        view.append(contentsOf: scalars)
        return String(view)
    }

    @Test("the splice of two random texts turns one into the other at boundaries of clusters") func random() throws {
        try Seeds.run(3_000) { seed in
            var random = SeededNumbers(seed)
            let old = text(&random)
            let new = edit(old, &random)
            let splices = splices(old, new)
            #expect(splices.count <= 1 && splices.isEmpty == old.utf8.elementsEqual(new.utf8))
            let operation = FieldOperation.splice(splices)
            let result = try #require(operation.applied(to: .string(old), isAbsentSafe: true)?.string)
            #expect(result.utf8.elementsEqual(new.utf8), "REEL_SEED=\(seed)")
            for splice in splices {
                for (text, offset) in [
                    (old, splice.offset), (old, splice.offset + splice.removed), (new, splice.offset),
                    (new, splice.offset + Int64(splice.text.unicodeScalars.count)),
                ] {
                    let index = text.unicodeScalars.index(text.startIndex, offsetBy: Int(offset))
                    #expect(String.Index(index, within: text) != nil, "REEL_SEED=\(seed)")
                }
            }
        }
    }

    @Test("an edit moved over another one fits the text, and is the edit itself if the other one changes nothing")
    func randomRebase() throws {
        try Seeds.run(3_000) { seed in
            var random = SeededNumbers(seed)
            let old = text(&random)
            let (new, present) = (edit(old, &random), edit(old, &random))
            _ = try #require(edited(old, new, in: present), "REEL_SEED=\(seed)")
            #expect(edited(old, old, in: present) == present)
        }
    }

    @Test("bytes are spliced at their offsets, and edits of others stay") func bytes() throws {
        func splices(_ old: [UInt8], _ new: [UInt8], in present: [UInt8]) -> [TextSplice] {
            ByteDifference.splices(from: old, to: new, in: present)
        }
        #expect(splices([1, 2, 3], [1, 9, 3], in: [1, 2, 3]) == [TextSplice(at: 1, removing: 1, inserting: "\u{9}")])
        #expect(splices([1, 2], [1, 2, 255], in: [0, 1, 2]) == [TextSplice(at: 3, inserting: "\u{FF}")])
        #expect(splices([1, 2, 3], [1, 3], in: [1, 3]).isEmpty)
        try Seeds.run(500) { seed in
            var random = SeededNumbers(seed)
            func bytes(_ count: Int) -> [UInt8] {
                (0..<random.below(count)).map { _ in UInt8.random(in: 0...255, using: &random) }
            }
            let old = bytes(20)
            var new = old
            let from = random.below(old.count + 1)
            new.replaceSubrange(from..<(from + random.below(old.count - from + 1)), with: bytes(6))
            let operation = FieldOperation.splice(splices(old, new, in: old))
            let result = try #require(operation.applied(to: .string(ByteDifference.text(of: old)), isAbsentSafe: true))
            #expect(try ByteDifference.bytes(of: result) == new)
        }
    }
}
