import TestSupport
import Testing

@testable import Reel

/// The text of a draft with its places in UTF-16.
@Suite struct TextViewTests {
    private func bytes(_ text: String) -> [UInt8] { Array(text.utf8) }

    @Test("random edits in UTF-16 give the text that the caller asks for, and split no cluster") func edits() throws {
        try Seeds.run(700) { seed in
            var random = SeededNumbers(seed)
            var expected = DraftText.random(&random, 12)
            var view = TextView(expected)
            for _ in 0..<20 {
                let old = view.text
                if random.oneIn(3) {
                    let patch = Patch<String>.difference(from: old, to: DraftText.random(&random, 12))
                    for hunk in patch.hunks.reversed() {
                        let change = view.perform(hunk)
                        expected = DraftText.replaced(expected, change.utf16, change.text)
                    }
                } else {
                    let (range, text) = DraftText.edit(of: old, &random)
                    let edit = view.replace(range, with: text)
                    let hunk = try #require(edit, "REEL_SEED=\(seed)")
                    expected = DraftText.replaced(expected, range, text)
                    let patched = Patch(hunk).applied(to: old)
                    #expect(bytes(patched) == bytes(view.text), "REEL_SEED=\(seed)")
                    let isWhole = DraftText.isBorder(hunk.start, of: old) && DraftText.isBorder(hunk.end, of: old)
                    #expect(hunk.isEmpty || isWhole, "REEL_SEED=\(seed)")
                }
                #expect(bytes(view.text) == bytes(expected), "REEL_SEED=\(seed)")
                #expect(view.utf16Count == expected.utf16.count, "REEL_SEED=\(seed)")
                let selection = view.selection
                #expect(DraftText.isUTF16Border(selection.lowerBound, of: expected), "REEL_SEED=\(seed)")
                #expect(DraftText.isUTF16Border(selection.upperBound, of: expected), "REEL_SEED=\(seed)")
                view.selection = random.below(30) - 5..<40
                if random.oneIn(2) {
                    let place = random.below(expected.utf16.count + 1)
                    view.selection = place..<place
                }
            }
        }
    }

    @Test("a range beyond the text or between two surrogates is refused, and changes nothing") func refused() {
        var view = TextView("a😀")
        for range in [0..<4, -1..<0, 2..<2, 2..<3, 1..<2] {
            let edit = view.replace(range, with: "x")
            #expect(edit == nil)
        }
        #expect(view.text == "a😀" && view.utf16Count == 3)
    }

    @Test("an edit inside a cluster replaces the whole cluster") func widened() {
        var view = TextView("xe\u{301}y")
        let removed = view.replace(2..<3, with: "")
        #expect(view.text == "xey" && removed?.start == 1 && removed?.removed == 3 && removed?.inserted == "e")
        let added = view.replace(2..<2, with: "\u{301}")
        #expect(added?.start == 2 && added?.removed == 0 && added?.inserted == "\u{301}")
        #expect(view.selection == 3..<3)
    }

    @Test("the selection follows the edits of others, and what they insert at its ends stays outside")
    func selection() {
        func moved(_ selection: Range<Int>, _ start: Int, _ removed: Int, _ text: String) -> Range<Int> {
            var view = TextView("0123456789")
            view.selection = selection
            _ = view.perform(.init(start: start, removed: removed, inserted: text))
            return view.selection
        }
        #expect(moved(3..<3, 3, 0, "ab") == 3..<3)
        #expect(moved(3..<3, 2, 0, "😀") == 5..<5)
        #expect(moved(3..<5, 3, 0, "ab") == 5..<7)
        #expect(moved(3..<5, 5, 0, "ab") == 3..<5)
        #expect(moved(3..<5, 4, 0, "ab") == 3..<7)
        #expect(moved(3..<5, 0, 10, "") == 0..<0)
        #expect(moved(3..<5, 4, 3, "") == 3..<4)
        #expect(moved(8..<8, 2, 2, "") == 6..<6)
        #expect(moved(3..<5, 3, 1, "\u{301}") == 2..<5)
    }

    @Test("an insertion point moves to the start of its cluster, and a selection is widened") func clusters() {
        var view = TextView("a👨‍👩‍👧b")
        view.selection = 4..<4
        #expect(view.selection == 1..<1)
        view.selection = 4..<5
        #expect(view.selection == 1..<9)
        view.selection = 5..<100
        #expect(view.selection == 1..<10)
        view.selection = -5 ..< -2
        #expect(view.selection == 0..<0)
    }
}
