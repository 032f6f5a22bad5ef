import Testing

@testable import ReelCore

/// Tests the limits on the history of texts that an object keeps.
@Suite struct FoldHiddenTextTests {
    private static let length = 400_000
    private static let letters = String(repeating: "a", count: length)
    private static let all = "{\"t\":{\"splice\":[[0,\(length),\"\"]]}}"

    private static func splice(_ name: String, _ text: String = "x") -> String {
        "{\"\(name)\":{\"splice\":[[0,0,\"\(text)\"]]}}"
    }

    /// Returns a script in which site 1 has written three texts at seq 0, and sites 2 to 5 have a noop each.
    private static func written() -> FoldScript {
        var script = FoldScript()
        script.event("insert", 1, fields: "{\"t\":\"\(letters)\",\"u\":\"\",\"v\":\"vv\"}")
        for site in 2...5 { script.noop(site) }
        return script
    }

    @Test("the fold treats a text over the history limit as plainly written and rejects older splices as stale")
    func limitsHistory() throws {
        var script = Self.written()
        #expect(script.event("update", 5, base: 4, ops: Self.splice("u", "u")) == .applied)
        #expect(script.event("update", 5, base: 4, ops: "{\"v\":{\"splice\":[[0,1,\"w\"]]}}") == .applied)
        let last = script.fold.seq
        #expect(script.event("update", 2, base: 4, ops: Self.all) == .applied)
        #expect(script.event("update", 3, base: 4, ops: Self.splice("t")) == .applied)
        // The weight is one for each deleted scalar, and 16 for each of the three runs after the first run of a text.
        #expect(script.fold.weight == Self.length + 1 + 3 * 16)
        // Two deleters give an element four times the weight of one deleter, which exceeds the limit.
        #expect(script.event("update", 4, base: 4, ops: Self.all) == .applied)
        #expect(script.fold.weight == 0)
        #expect(script.value("t") == "\"x\"")
        let seq = script.fold.seq
        var copy = script
        copy.fold = try Fold(snapshotOf: &script.fold)
        for var script in [script, copy] {
            for site in [1, 4] {
                #expect(script.event("update", site, base: seq - 1, ops: Self.splice("t")) == .rejected(.stale))
            }
            // An author that has seen the last splice of a text has missed nothing of it, so its splice is applied.
            #expect(script.event("update", 5, base: last - 1, ops: Self.splice("v")) == .rejected(.stale))
            #expect(script.event("update", 3, base: last, ops: Self.splice("v")) == .applied)
            #expect(script.value("v") == "\"xwv\"")
            #expect(script.event("update", 2, base: seq, ops: "{\"t\":{\"splice\":[[0,1,\"y\"]]}}") == .applied)
            #expect(script.value("t") == "\"y\"")
            // The history of a text without deleted elements is kept.
            #expect(script.event("update", 3, base: 4, ops: Self.splice("u", "v")) == .applied)
            #expect(script.value("u") == "\"vu\"")
        }
    }

    @Test("the fold accepts pending splices of an author that saw all other edits, even beyond the limit")
    func acceptsPendingSplices() {
        var script = Self.written()
        let base = script.fold.seq
        let replace = "{\"t\":{\"splice\":[[0,\(Self.length),\"\(Self.letters)\"]]}}"
        var flattened = 0
        for _ in 0..<8 {
            #expect(script.event("update", 2, base: base, ops: replace) == .applied)
            if script.fold.weight == 0 { flattened += 1 }
        }
        #expect(flattened == 2)
        #expect(script.event("update", 3, base: base, ops: Self.splice("t")) == .rejected(.stale))
        #expect(script.event("update", 2, base: base, ops: Self.splice("t")) == .applied)
    }

    @Test("an event that brings a text over the history limit can continue to splice it")
    func continuesInsideEvent() {
        var script = Self.written()
        for site in 2...3 { #expect(script.event("update", site, base: 4, ops: Self.all) == .applied) }
        let weight = script.fold.weight
        #expect(weight == 0, "beyond the limit by two deleters each")
        let some = "{\"t\":{\"splice\":[[0,\(Self.length / 2),\"\"]]}}"
        for _ in 0..<2 {
            #expect(script.event("update", 1, fields: "{\"t\":\"\(Self.letters)\"}") == .applied)
            let base = script.fold.seq
            for site in 2...3 { #expect(script.event("update", site, base: base, ops: some) == .applied) }
            #expect(script.fold.weight == 2 * Self.length + 16)
            let parts = (0..<2).map { _ in FoldScript.part("update", ops: some) }
            #expect(script.batch(parts + [FoldScript.part("update", ops: Self.splice("t"))], 4, base: base) == .applied)
            #expect(script.fold.weight == 0)
            #expect(script.value("t") == "\"x\"")
        }
    }

    @Test("the fold keeps no history of text that one event inserts and deletes")
    func dropsTransientText() {
        var script = Self.written()
        let triples = "[0,0,\"\(Self.letters)\"],[1,\(Self.length - 2),\"\"],[0,2,\"\"]"
        for _ in 0..<4 {
            #expect(script.event("update", 2, ops: "{\"u\":{\"splice\":[\(triples)]}}") == .applied)
        }
        #expect(script.fold.weight == 0)
        #expect(script.event("update", 3, base: 4, ops: Self.splice("u", "v")) == .applied)
        #expect(script.value("u") == "\"v\"")
    }

    @Test("the fold treats a text with too many runs as plainly written")
    func limitsRuns() {
        var script = FoldScript()
        script.event("insert", 1, fields: #"{"t":"\#(String(repeating: "a", count: 33_000))"}"#)
        for site in 2...11 { script.noop(site) }
        let base = script.fold.seq
        // Inserts a letter after each letter of the range. Each triple adds two runs.
        func insertion(_ range: Range<Int>) -> String {
            let triples = range.reversed().map { #"[\#($0 + 1),0,"b"]"# }.joined(separator: ",")
            return #"{"t":{"splice":[\#(triples)]}}"#
        }
        for part in 0..<8 {
            let range = part * 4_096..<(part + 1) * 4_096
            #expect(script.event("update", 2 + part, base: base, ops: insertion(range)) == .applied)
        }
        #expect(script.fold.weight == 16 * 65_536)
        // A splice without an effect adds no run.
        #expect(script.event("update", 10, base: base, ops: #"{"t":{"splice":[[0,0,""]]}}"#) == .applied)
        #expect(script.fold.weight == 16 * 65_536)
        let last = script.fold.seq
        #expect(script.event("update", 10, base: base, ops: Self.splice("t")) == .applied)
        #expect(script.fold.weight == 0)
        #expect(script.event("update", 11, base: last, ops: Self.splice("t")) == .rejected(.stale))
        #expect(script.event("update", 9, base: last + 1, ops: Self.splice("t")) == .applied)
    }

    @Test("a run computes its weight without overflow for any number of deleters")
    func weightDoesNotOverflow() {
        let mark = TextMark(seq: 1, site: FoldScript.site(1))
        var run = TextRun(inserted: .ancient, bytes: 1, scalars: Int(Int32.max))
        for _ in 0..<100_000 { run.delete(by: mark) }
        #expect(run.weight > Limits.history)
    }

    @Test("text that was deleted at or below the horizon has no weight")
    func oldDeletionsWeighNothing() {
        var script = Self.written()
        for _ in 0..<20 { script.noop(1) }
        let replace = "{\"t\":{\"splice\":[[0,\(Self.length),\"\(Self.letters)\"]]}}"
        for _ in 0..<2 { #expect(script.event("update", 2, ops: replace) == .applied) }
        #expect(script.fold.weight == 2 * Self.length + 2 * 16)
        let seq = script.fold.seq
        for _ in 0..<20 { script.noop(1) }
        script.setHorizon(seq)
        #expect(script.event("update", 3, ops: replace) == .applied)
        #expect(script.fold.weight == Self.length + 16)
        #expect(script.event("update", 4, base: seq, ops: Self.splice("t")) == .applied)
    }
}

extension Fold {
    /// The exact weight of all texts of the object.
    fileprivate var weight: Int {
        guard let slot = slot("m", "1") else { return -1 }
        return objects[slot].fields.reduce(0) { sum, field in
            guard case .text(var text) = field.value else { return sum }
            text.weigh(above: horizon)
            return sum + text.weight
        }
    }

    private func slot(_ model: String, _ id: String) -> Int? {
        JSONText.withEscaped(model) { model in JSONText.withEscaped(id) { objects.find(model: model, id: $0) } }
    }

    /// Creates a fold from a snapshot of another fold.
    fileprivate init(snapshotOf fold: inout Fold) throws {
        var writer = try fold.snapshot()
        var lines = [UInt8]()
        writer.writeAll(to: &lines)
        self = try lines.withUnsafeBytes { try Fold(snapshot: $0) }
    }
}
