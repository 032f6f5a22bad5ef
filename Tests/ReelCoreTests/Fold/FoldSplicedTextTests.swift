import TestSupport
import Testing

@testable import ReelCore

/// A naive implementation of the merge rule for texts, which stores each element separately.
private struct NaiveText {
    struct Element {
        var scalar: Unicode.Scalar
        var inserted: TextMark
        var deleters: [TextMark] = []
    }

    var elements: [Element] = []

    func counts(_ element: Element, _ viewer: TextViewer) -> Bool {
        viewer.sees(element.inserted) && !element.deleters.contains(where: viewer.sees)
    }

    func count(_ viewer: TextViewer) -> Int { elements.count { counts($0, viewer) } }

    var text: String {
        var text = String.UnicodeScalarView()
        for element in elements where element.deleters.isEmpty { text.append(element.scalar) }
        return String(text)
    }

    mutating func splice(_ offset: Int, _ removed: Int, _ text: String, mark: TextMark, viewer: TextViewer) {
        var place = 0
        var counted = 0
        while counted < offset {
            if counts(elements[place], viewer) { counted += 1 }
            place += 1
        }
        var rest = removed
        var at = place
        while rest > 0 {
            if counts(elements[at], viewer) {
                elements[at].deleters.append(mark)
                rest -= 1
            }
            at += 1
        }
        elements.insert(contentsOf: text.unicodeScalars.map { Element(scalar: $0, inserted: mark) }, at: place)
    }
}

@Suite struct FoldSplicedTextTests {
    private static let alphabet = Array("abcdefghij \"\\\n\u{1}é漢😀e\u{301}".unicodeScalars)

    private static func random(_ count: Int, _ random: inout SeededNumbers) -> String {
        var text = String.UnicodeScalarView()
        for _ in 0..<count { text.append(alphabet.randomElement(using: &random)!) }
        return String(text)
    }

    @Test("concurrent splices produce the text that the merge rule defines, for any author and base", arguments: 0..<2)
    func agreesWithTheRule(history: UInt64) {
        var random = SeededNumbers(TestSeed.value &+ history)
        let sites = (1...5).map { Site(high: 7, low: UInt64($0)) }
        let first = Self.random(history.isMultiple(of: 2) ? 30 : 3_000, &random)
        var seq: Seq = 10
        let written = TextMark(seq: seq, site: sites[0])
        var naive = NaiveText()
        naive.splice(0, 0, first, mark: written, viewer: TextViewer(site: sites[0], base: seq))
        var text = JSONText.withEscaped(first) { SplicedText($0, written: written) }
        var horizon = Seq.none
        for step in 0..<300 * effort {
            seq += Seq.random(in: 1...3, using: &random)
            let site = sites.randomElement(using: &random)!
            let lag = Seq.random(in: 1...60, using: &random)
            let viewer = TextViewer(site: site, base: max(10, horizon, seq - lag))
            let count = naive.count(viewer)
            #expect(text.count(for: viewer) == count)
            let offset = Int.random(in: 0...count, using: &random)
            let isPaste = Int.random(in: 0..<40, using: &random) == 0
            let removed = min(count - offset, Int.random(in: 0...(isPaste ? 500 : 4), using: &random))
            let inserted = Self.random(Int.random(in: 0...(isPaste ? 2_000 : 5), using: &random), &random)
            let mark = TextMark(seq: seq, site: site)
            let kept = text
            JSONText.withEscaped(inserted) {
                text.splice(
                    at: offset,
                    removing: removed,
                    inserting: $0,
                    scalars: inserted.unicodeScalars.count,
                    mark: mark,
                    viewer: viewer,
                    horizon: horizon
                )
            }
            if Int.random(in: 0..<10, using: &random) == 0 {
                // A rejected batch restores the old value.
                text = kept
                continue
            }
            naive.splice(offset, removed, inserted, mark: mark, viewer: viewer)
            if step % 25 == 0 {
                horizon = seq - 100
                #expect(text.string == naive.text)
                if text.string != naive.text { return }
            }
        }
        #expect(text.string == naive.text)
        #expect(text.scalars == naive.text.unicodeScalars.count)
    }

    @Test("a text forgets history below the horizon while splices continue")
    func textForgetsHistory() {
        let site = Site(high: 1, low: 1)
        var text = SplicedText(written: nil)
        for seq: Seq in 0..<3_000 {
            let viewer = TextViewer(site: site, base: seq - 1)
            JSONText.withEscaped("x") {
                text.splice(
                    at: min(Int(seq), Int(seq * 7919) % Int(seq + 1)),
                    removing: 0,
                    inserting: $0,
                    scalars: 1,
                    mark: TextMark(seq: seq, site: site),
                    viewer: viewer,
                    horizon: seq - 150
                )
            }
        }
        #expect(text.storedRuns < 450)
        #expect(text.scalars == 3_000)
    }
}

extension SplicedText {
    fileprivate var string: String {
        var bytes = [UInt8]()
        write(into: &bytes)
        return bytes.withUnsafeBytes { JSONText($0).string }
    }

    /// The number of runs that the tree stores separately.
    fileprivate var storedRuns: Int {
        var count = 0
        forEachRun(above: .none) { _, _ in count += 1 }
        return count
    }
}
