import Testing

@testable import ReelCore

/// Tests the effects of applied events on objects.
@Suite struct FoldEffectTests {
    @Test("insert creates, or writes over what is alive; null removes; the last writer counts")
    func writes() {
        var script = FoldScript()
        script.event("insert", 1, fields: "{\"a\":1,\"b\":2}")
        script.event("insert", 2, fields: "{\"a\":1,\"c\":3}")
        script.event("update", 1, fields: "{\"b\":null,\"d\":null}")
        let object = script.fold.object(model: "m", id: "1")
        #expect(object?.fields.map { String(decoding: $0.name, as: UTF8.self) } == ["a", "c"])
        #expect(object?.fields.map(\.seq) == [1, 1])
        #expect(object?.fields.first?.site == FoldScript.site(2))
        #expect(object?.seq == 2)
        #expect(script.event("update", 1) == .applied)
        #expect(script.fold.object(model: "m", id: "1")?.seq == 3)
    }

    @Test("remove first, then add; sorted by canonical bytes, each once")
    func sets() {
        var script = FoldScript()
        script.event("insert", fields: "{\"s\":[\"b\",1,\"b\",[2],10,null]}")
        script.event("update", ops: "{\"s\":{\"add\":[\"a\",1],\"remove\":[1,\"b\",{}]}}")
        #expect(script.value("s") == "[\"a\",1,10,[2],null]")
        script.event("update", ops: "{\"s\":{\"remove\":[\"a\",1,10,[2],null]}}")
        #expect(script.value("s") == "[]")
    }

    @Test("sums are IEEE's, printed as ECMAScript does")
    func sums() {
        var script = FoldScript()
        script.event("insert", fields: "{\"n\":0.1}")
        script.event("update", ops: "{\"n\":{\"inc\":0.2}}")
        #expect(script.value("n") == "0.30000000000000004")
        script.event("update", ops: "{\"n\":{\"inc\":1e+21}}")
        #expect(script.value("n") == "1e+21")
        script.event("update", ops: "{\"n\":{\"inc\":-1e+21}}")
        #expect(script.value("n") == "0")
    }

    @Test("a batch is all or none, texts and new objects too")
    func batches() throws {
        var script = FoldScript()
        script.event("insert", fields: "{\"n\":1,\"t\":\"abc\"}")
        script.event("update", ops: "{\"t\":{\"splice\":[[3,0,\"d\"]]}}")
        script.event("insert", id: "gone")
        let before = script.fold
        let parts = [
            FoldScript.part(
                "update",
                fields: "{\"x\":1}",
                ops: "{\"n\":{\"inc\":1},\"t\":{\"splice\":[[1,2,\"XY\"]]}}"
            ),
            FoldScript.part("insert", id: "new", fields: "{\"a\":1}"),
            FoldScript.part("delete", id: "gone"),
            FoldScript.part("delete"),
        ]
        #expect(script.batch(parts + [FoldScript.part("update", id: "never")]) == .rejected(.noObject))
        for id in ["1", "new", "gone"] {
            let (old, now) = (before.object(model: "m", id: id), script.fold.object(model: "m", id: id))
            #expect(old?.seq == now?.seq)
            #expect(old?.isDeleted == now?.isDeleted)
            #expect(old?.fields.map(\.value) == now?.fields.map(\.value))
        }
        var loaded = try script.fold.lines().withUnsafeBytes { try Fold(snapshot: $0) }
        #expect(loaded.digest() == script.fold.digest())
        #expect(script.batch(parts) == .applied)
        #expect(script.fold.object(model: "m", id: "1")?.isDeleted == true)
        // A part of a batch sees the effects of the earlier parts.
        let twice = [
            FoldScript.part("insert", id: "9"), FoldScript.part("update", id: "9", ops: "{\"n\":{\"inc\":2}}"),
        ]
        #expect(script.batch(twice) == .applied)
        #expect(script.value("n", id: "9") == "2")
    }

    @Test("two authors that type forward at the same time keep their words whole")
    func keepsWordsWhole() {
        var script = FoldScript()
        script.event("insert", 3, fields: "{\"t\":\"\"}")
        for (index, letter) in "milk".enumerated() {
            script.event("update", 1, base: 0, ops: "{\"t\":{\"splice\":[[\(index),0,\"\(letter)\"]]}}")
            script.event("update", 2, base: 0, ops: "{\"t\":{\"splice\":[[\(index),0,\"\(letter.uppercased())\"]]}}")
        }
        #expect(script.value("t") == "\"MILKmilk\"")
    }

    @Test("both delete the same, one puts something else there")
    func overlap() {
        var script = FoldScript()
        script.event("insert", 3, fields: "{\"t\":\"abcdef\"}")
        script.event("update", 1, base: 0, ops: "{\"t\":{\"splice\":[[1,3,\"X\"]]}}")
        script.event("update", 2, base: 0, ops: "{\"t\":{\"splice\":[[2,3,\"Y\"]]}}")
        #expect(script.value("t") == "\"aXYf\"")
    }

    @Test("the fold forgets tombstones and ended sites at or below the horizon when a mark moves it")
    func forgetsBelowHorizon() {
        var script = FoldScript()
        script.event("insert")
        script.event("delete")
        script.noop(2, last: true)
        for _ in 0..<40 { script.noop() }
        script.fold.consumed = 16 * 4_096 - 1
        script.fold.marks = (2..<17).map { $0 }
        #expect(script.noop() == .applied)
        #expect(script.fold.horizon == 2)
        #expect(script.fold.object(model: "m", id: "1") == nil)
        #expect(script.fold.site(FoldScript.site(2)) == nil)
        #expect(script.event("insert") == .applied)
        #expect(script.noop(2, op: 0) == .applied)
    }

    @Test("the fold sets a mark at every 4,096th consumed event")
    func setsMarks() {
        var script = FoldScript()
        script.fold.consumed = 4_094
        script.noop()
        #expect(script.fold.marks == [])
        #expect(script.noop(op: 0) == .duplicate)
        script.noop()
        #expect(script.fold.marks == [2])
        #expect(script.fold.horizon == -1)
    }
}
