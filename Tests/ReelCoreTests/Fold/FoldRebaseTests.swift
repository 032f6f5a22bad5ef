import TestSupport
import Testing

@testable import ReelCore

/// Tests the conversion of splices to a newer base.
@Suite struct FoldRebaseTests {
    private static let site = FoldScript.site(1)

    /// Returns the triples that a splice of site 1 on `base` has on the newest state, or nil if the splice is stale.
    private static func rebased(_ triples: [String], base: Seq, _ script: FoldScript) -> [String]? {
        let text = """
            {"base":\(base),"id":"1","model":"m","op":0,"ops":{"t":{"splice":[\(triples.joined(separator: ","))]}},\
            "site":"\(site)","type":"update"}
            """
        var (event, draft) = (ParsedEvent(), FoldDraft(of: FoldHistory.stream))
        draft.takeHorizon(of: script.fold)
        draft.reset(Fold.key(model: "m", id: "1"), to: script.fold)
        return Array(text.utf8).withUnsafeBytes { value in
            guard (try? event.parse(value)) != nil else { return nil }
            let edits = draft.rebased(event.operations[0], of: event.parts[0], in: event, value, to: script.fold.seq)
            return edits?.map { edit in
                let text = edit.triple.map { String(decoding: value[event.triples[$0].text], as: UTF8.self) }
                return "[\(edit.offset),\(edit.removed),\"\(text ?? "")\"]"
            }
        }
    }

    private static func splice(_ triples: [String]) -> String {
        "{\"t\":{\"splice\":[\(triples.joined(separator: ","))]}}"
    }

    @Test("a rebased splice does to the text what the splice does at its own base")
    func sameText() {
        var changed = 0
        for number in 0..<UInt64(300 * effort) {
            let seed = TestSeed.value &+ 8_000 &+ number
            var random = SeededNumbers(seed)
            var script = FoldScript()
            script.event("insert", 2, fields: "{\"t\":\"0123456789\"}")
            var (base, length) = (script.fold.seq, 10)
            for turn in 0..<Int.random(in: 1...12, using: &random) {
                let writer = [1, 2, 3].randomElement(using: &random)!
                if Int.random(in: 0..<3, using: &random) == 0 {
                    base = script.fold.seq
                    length = script.value("t")!.unicodeScalars.count - 2
                }
                // An author sees its own events whatever its base is, so an own event sets base and length.
                if writer == 1 {
                    (base, length) = (script.fold.seq, script.value("t")!.unicodeScalars.count - 2)
                }
                let all = script.value("t")!.unicodeScalars.count - 2
                let offset = Int.random(in: 0...all, using: &random)
                let removed = Int.random(in: 0...min(4, all - offset), using: &random)
                let text = ["", "w\(turn)"].randomElement(using: &random)!
                script.event("update", writer, ops: Self.splice(["[\(offset),\(removed),\"\(text)\"]"]))
                if writer == 1 {
                    (base, length) = (script.fold.seq, script.value("t")!.unicodeScalars.count - 2)
                }
            }
            var (triples, left) = ([String](), length)
            for index in 0..<Int.random(in: 1...3, using: &random) {
                let offset = Int.random(in: 0...left, using: &random)
                let removed = Int.random(in: 0...min(5, left - offset), using: &random)
                let text = ["", "XY", "é\(index)"].randomElement(using: &random)!
                triples.append("[\(offset),\(removed),\"\(text)\"]")
                left += text.unicodeScalars.count - removed
            }
            guard let new = Self.rebased(triples, base: base, script) else {
                Issue.record("seed \(seed): found no steps for \(triples) on \(base)")
                return
            }
            var (old, rebased) = (script, script)
            #expect(old.event("update", base: base, ops: Self.splice(triples)) == .applied, "seed \(seed)")
            #expect(rebased.event("update", ops: Self.splice(new)) == .applied, "seed \(seed): \(new)")
            #expect(old.value("t") == rebased.value("t"), "seed \(seed): \(triples) on \(base) became \(new)")
            if new != triples { changed += 1 }
        }
        #expect(changed > 50)
    }

    @Test("elements that others have deleted are left out, and what they inserted between stays")
    func overlap() {
        var script = FoldScript()
        script.event("insert", 2, fields: "{\"t\":\"abcdef\"}")
        let base = script.fold.seq
        script.event("update", 2, ops: Self.splice(["[1,2,\"\"]"]))
        script.event("update", 2, ops: Self.splice(["[2,0,\"NEW\"]"]))
        #expect(script.value("t") == "\"adNEWef\"")
        #expect(Self.rebased(["[1,4,\"x\"]"], base: base, script) == ["[5,1,\"\"]", "[1,1,\"x\"]"])
        #expect(Self.rebased(["[1,2,\"\"]"], base: base, script) == ["[1,0,\"\"]"])
    }

    @Test("a splice that would be stale or does not fit has no steps")
    func stale() {
        var script = FoldScript()
        script.event("insert", 2, fields: "{\"n\":1,\"t\":\"ab\"}")
        let base = script.fold.seq
        #expect(Self.rebased(["[3,0,\"x\"]"], base: base, script) == nil)
        #expect(Self.rebased(["[1,2,\"x\"]"], base: base, script) == nil)
        script.event("update", 2, fields: "{\"t\":\"other\"}")
        #expect(Self.rebased(["[0,0,\"x\"]"], base: base, script) == nil)
        #expect(Self.rebased(["[0,0,\"x\"]"], base: script.fold.seq, script) == ["[0,0,\"x\"]"])
        script.event("update", 2, fields: "{\"t\":3}")
        #expect(Self.rebased(["[0,0,\"x\"]"], base: script.fold.seq, script) == nil)
        script.event("update", 2, fields: "{\"t\":null}")
        #expect(Self.rebased(["[0,0,\"x\"]"], base: script.fold.seq, script) == ["[0,0,\"x\"]"])
        for _ in 0..<30 { script.noop() }
        script.setHorizon(10)
        #expect(Self.rebased(["[0,0,\"x\"]"], base: 9, script) == nil)
    }
}
