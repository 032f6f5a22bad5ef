import Testing

@testable import ReelCore

/// Tests the reasons for which the fold rejects an event that it consumes.
@Suite struct FoldRejectionTests {
    @Test("the fold rejects an event with a base at or after its own seq")
    func badBase() {
        var script = FoldScript()
        #expect(script.noop(base: 0) == .rejected(.badBase))
        #expect(script.event("insert", base: 1) == .rejected(.badBase))
        #expect(script.event("insert", base: 1) == .applied)
        #expect(script.fold.consumed == 3)
    }

    @Test("an insert from below the horizon comes before all else, an update does not mind")
    func staleInsert() {
        var script = FoldScript()
        script.event("insert")
        script.event("insert", id: "2")
        script.event("delete", id: "2")
        for _ in 0..<30 { script.noop() }
        script.setHorizon(10)
        #expect(script.event("insert", base: 9, id: "3") == .rejected(.stale))
        #expect(script.event("insert", base: 9, id: "2") == .rejected(.stale))
        #expect(script.event("update", base: 9, fields: "{\"a\":1}") == .applied)
        #expect(script.event("insert", base: 10, id: "3") == .applied)
    }

    @Test("no un-deleting: insert and update of a tombstone; a second delete changes nothing")
    func deleted() {
        var script = FoldScript()
        script.event("insert", fields: "{\"a\":1}")
        #expect(script.event("delete") == .applied)
        #expect(script.event("insert") == .rejected(.deleted))
        #expect(script.event("update") == .rejected(.deleted))
        #expect(script.event("delete") == .applied)
        #expect(script.event("delete", guards: "{\"a\":0}") == .rejected(.guard))
        #expect(script.event("delete", guards: "{\"a\":-1}") == .applied)
        #expect(script.fold.object(model: "m", id: "1")?.seq == 1)
        #expect(script.fold.object(model: "m", id: "1")?.isDeleted == true)
    }

    @Test("update and delete of what never was")
    func noObject() {
        var script = FoldScript()
        #expect(script.event("update", guards: "{\"a\":7}") == .rejected(.noObject))
        #expect(script.event("delete") == .rejected(.noObject))
    }

    @Test("a guard compares the last writer before the event, −1 for an absent field")
    func guards() {
        var script = FoldScript()
        #expect(script.event("insert", fields: "{\"a\":1}", guards: "{\"a\":-1}") == .applied)
        #expect(script.event("update", fields: "{\"a\":2}", guards: "{\"a\":0,\"b\":-1}") == .applied)
        #expect(script.event("update", fields: "{\"a\":3}", guards: "{\"a\":0}") == .rejected(.guard))
        #expect(script.event("update", fields: "{\"a\":3}", guards: "{\"b\":1}") == .rejected(.guard))
        #expect(script.event("update", fields: "{\"a\":null}") == .applied)
        #expect(script.event("update", guards: "{\"a\":4}") == .rejected(.guard))
        #expect(script.event("update", guards: "{\"a\":-1}") == .applied)
        // Guards of all parts compare the state before the batch, whatever an earlier part wrote.
        let write = FoldScript.part("update", fields: "{\"a\":5}")
        let check = FoldScript.part("update", guards: "{\"a\":-1}")
        #expect(script.batch([write, check]) == .applied)
        let make = FoldScript.part("insert", id: "2", fields: "{\"a\":1}")
        let other = FoldScript.part("delete", id: "2", guards: "{\"a\":-1}")
        #expect(script.batch([make, other]) == .applied)
        // Guards are checked before types.
        #expect(script.event("update", guards: "{\"a\":0}", ops: "{\"a\":{\"add\":[1]}}") == .rejected(.guard))
    }

    @Test("the fold rejects a splice of a text that another site has overwritten since the base")
    func staleSplice() {
        var script = FoldScript()
        script.event("insert", 1, fields: "{\"t\":\"one\"}")
        script.noop(2)
        script.event("update", 1, fields: "{\"t\":\"two\"}")
        let splice = "{\"t\":{\"splice\":[[0,0,\"x\"]]}}"
        #expect(script.event("update", 2, base: 1, ops: splice) == .rejected(.stale))
        #expect(script.event("update", 1, base: 1, ops: splice) == .applied)
        // A splice is also stale if a number was written since its base. This is checked before the type.
        script.event("update", 1, fields: "{\"t\":1}")
        #expect(script.event("update", 2, base: 4, ops: splice) == .rejected(.stale))
        #expect(script.event("update", 2, ops: splice) == .rejected(.type))
        // A removed field has no last write, so a splice on an old base is applied. Only the mark of site 2 rejects
        // its splice.
        script.event("update", 1, fields: "{\"t\":null}")
        #expect(script.event("update", 2, base: 1, ops: splice) == .rejected(.stale))
        #expect(script.lost(2) == ["m/1 t": 7])
        #expect(script.event("update", 3, base: 1, ops: splice) == .applied)
        #expect(script.value("t") == "\"x\"")
    }

    @Test("after a rejected text, splices that count on it are rejected until the author has seen that")
    func refusedText() {
        var script = FoldScript()
        script.event("insert", fields: "{\"t\":\"\"}")
        let text = "{\"t\":{\"splice\":[[0,0,\"abc\"]]}}"
        let more = "{\"t\":{\"splice\":[[3,0,\"d\"]]}}"
        #expect(script.event("update", base: 0, guards: "{\"t\":7}", ops: text) == .rejected(.guard))
        #expect(script.event("update", base: 0, ops: more) == .rejected(.stale))
        #expect(script.event("update", base: 2, ops: more) == .rejected(.range))
        #expect(script.event("update", base: 3, ops: text) == .applied)
        // A rejected number leaves no mark, because no offsets depend on it. A rejected string or null leaves a mark.
        let before = script.lost(1)
        #expect(script.event("update", fields: "{\"n\":1}", guards: "{\"t\":7}") == .rejected(.guard))
        #expect(script.lost(1) == before)
        for value in ["\"s\"", "null"] {
            #expect(script.event("update", fields: "{\"n\":\(value)}", guards: "{\"t\":7}") == .rejected(.guard))
            #expect(script.lost(1) == before.merging(["m/1 n": script.fold.seq]) { $1 })
        }
    }

    @Test("a rejected text costs no splice of another field")
    func otherField() {
        var script = FoldScript()
        script.event("insert", fields: "{\"a\":\"\",\"b\":\"\"}")
        script.event("insert", id: "2", fields: "{\"a\":\"\"}")
        let splice = { (name: String) in "{\"\(name)\":{\"splice\":[[0,0,\"x\"]]}}" }
        #expect(script.event("update", base: 1, guards: "{\"a\":7}", ops: splice("a")) == .rejected(.guard))
        #expect(script.event("update", base: 1, ops: splice("b")) == .applied)
        #expect(script.event("update", base: 1, id: "2", ops: splice("a")) == .applied)
        #expect(script.event("update", base: 1, ops: splice("a")) == .rejected(.stale))
        #expect(script.lost(1) == ["m/1 a": 2])
        // A batch with one rejected part is rejected as a whole. The fields of all its parts then get a mark.
        let parts = [FoldScript.part("update", ops: splice("a")), FoldScript.part("update", ops: splice("b"))]
        #expect(script.batch(parts, base: 1) == .rejected(.stale))
        #expect(script.lost(1) == ["m/1 a": 2, "m/1 b": 2])
    }

    @Test("a mark does not rise when it rejects a splice, so the author continues after one round trip")
    func rejectionKeepsMark() {
        var script = FoldScript()
        script.event("insert", 1, fields: "{\"t\":\"\"}")
        let splice = "{\"t\":{\"splice\":[[0,0,\"x\"]]}}"
        script.event("update", 2, fields: "{\"t\":\"other\"}")
        for _ in 0..<5 { #expect(script.event("update", 1, base: 0, ops: splice) == .rejected(.stale)) }
        #expect(script.lost(1) == ["m/1 t": 2])
        #expect(script.event("update", 1, base: 1, ops: splice) == .rejected(.stale))
        #expect(script.event("update", 1, base: 2, ops: splice) == .applied)
        // A mark rejects only events with splices. Other events of the author get their result at their own seq.
        #expect(script.event("update", 1, base: 0, fields: "{\"t\":\"\"}", guards: "{\"t\":0}") == .rejected(.guard))
        #expect(script.lost(1) == ["m/1 t": script.fold.seq])
    }

    @Test("an applied plain write of the field takes the mark away, whatever it writes")
    func plainWrite() {
        for value in ["\"new\"", "null", "1"] {
            for type in ["insert", "update"] {
                var script = FoldScript()
                script.event("insert", fields: "{\"t\":\"\",\"u\":\"\"}")
                let lost = "{\"t\":\"a\",\"u\":\"b\"}"
                #expect(script.event("update", fields: lost, guards: "{\"t\":7}") == .rejected(.guard))
                #expect(script.lost(1) == ["m/1 t": 1, "m/1 u": 1])
                #expect(script.event(type, fields: "{\"t\":\(value)}") == .applied)
                #expect(script.lost(1) == ["m/1 u": 1])
            }
        }
    }

    @Test("the 17th lost field of a site makes one mark for all its fields")
    func manyFields() {
        var script = FoldScript()
        let fields = { "{" + (0..<$0).map { "\"f\($0 + 10)\":\"\"" }.joined(separator: ",") + "}" }
        script.event("insert", fields: fields(17))
        #expect(script.event("update", fields: fields(16), guards: "{\"f10\":7}") == .rejected(.guard))
        #expect(script.lost(1).count == 16)
        #expect(script.event("update", fields: "{\"f26\":\"\"}", guards: "{\"f10\":7}") == .rejected(.guard))
        #expect(script.lost(1) == ["*": 2])
        let splice = "{\"z\":{\"splice\":[[0,0,\"x\"]]}}"
        #expect(script.event("update", base: 1, ops: splice) == .rejected(.stale))
        #expect(script.event("update", base: 2, ops: splice) == .applied)
        #expect(script.event("update", 2, fields: fields(17), guards: "{\"f10\":7}") == .rejected(.guard))
        #expect(script.lost(2) == ["*": script.fold.seq])
    }

    @Test("1,024 lost fields of a stream are kept, and one more makes one mark for the site that adds it")
    func manySites() {
        var script = FoldScript()
        let fields = "{" + (10..<26).map { "\"f\($0)\":\"\"" }.joined(separator: ",") + "}"
        script.event("insert", fields: fields)
        for site in 1...64 {
            #expect(script.event("update", site, fields: fields, guards: "{\"f10\":7}") == .rejected(.guard))
        }
        #expect(script.fold.lostCount == 1_024)
        #expect(script.event("update", 65, fields: "{\"f10\":\"\"}", guards: "{\"f10\":7}") == .rejected(.guard))
        #expect(script.lost(65) == ["*": script.fold.seq])
        #expect(script.fold.lostCount == 1_024)
        #expect(script.event("update", 1, fields: fields) == .applied)
        #expect(script.fold.lostCount == 1_008)
    }

    @Test("the horizon takes marks with it, and none is made at or below it")
    func horizonAndMarks() throws {
        var script = FoldScript()
        script.event("insert", fields: "{\"t\":\"\",\"u\":\"\"}")
        #expect(script.event("update", fields: "{\"t\":\"\"}", guards: "{\"t\":7}") == .rejected(.guard))
        for _ in 0..<30 { script.noop() }
        #expect(script.event("update", fields: "{\"u\":\"\"}", guards: "{\"t\":7}") == .rejected(.guard))
        script.setHorizon(1)
        script.fold.forget()
        #expect(script.lost(1) == ["m/1 u": 32])
        script.setHorizon(20)
        let before = script.fold
        script.fold.forget()
        #expect(
            script.fold.digest()
                == {
                    var fold = before; return fold.digest()
                }()
        )
        script.setHorizon(33)
        script.fold.forget()
        #expect(script.lost(1) == [:])
        #expect(script.fold.losingSites.isEmpty)
    }

    @Test("a splice from below the horizon")
    func oldSplice() {
        var script = FoldScript()
        script.event("insert", fields: "{\"t\":\"abc\"}")
        for _ in 0..<30 { script.noop() }
        script.setHorizon(10)
        let splice = "{\"t\":{\"splice\":[[3,0,\"d\"]]}}"
        #expect(script.event("update", base: 9, ops: splice) == .rejected(.stale))
        #expect(script.event("update", ops: splice) == .applied)
    }

    @Test("operations on what they cannot work on, and on absent fields")
    func type() {
        var script = FoldScript()
        script.event("insert", fields: "{\"a\":[1],\"n\":1,\"o\":{},\"s\":\"x\",\"t\":true}")
        for name in ["a", "o", "s", "t"] {
            #expect(script.event("update", ops: "{\"\(name)\":{\"inc\":1}}") == .rejected(.type))
        }
        for name in ["n", "o", "s", "t"] {
            #expect(script.event("update", ops: "{\"\(name)\":{\"add\":[1]}}") == .rejected(.type))
        }
        for name in ["a", "n", "o", "t"] {
            #expect(script.event("update", ops: "{\"\(name)\":{\"splice\":[[0,0,\"\"]]}}") == .rejected(.type))
        }
        let absent = "{\"x\":{\"inc\":2.5},\"y\":{\"add\":[2,1,2]},\"z\":{\"splice\":[[0,0,\"hi\"]]}}"
        #expect(script.event("update", ops: absent) == .applied)
        #expect(script.value("x") == "2.5")
        #expect(script.value("y") == "[1,2]")
        #expect(script.value("z") == "\"hi\"")
        // A text that was spliced still has the type string.
        #expect(script.event("update", ops: "{\"z\":{\"inc\":1}}") == .rejected(.type))
    }

    @Test("each check goes over all names before the next one")
    func rows() {
        var script = FoldScript()
        script.event("insert", 1, fields: "{\"a\":1.7e+308,\"b\":true,\"t\":\"x\"}")
        script.noop(2)
        script.event("update", 1, fields: "{\"t\":\"y\"}")
        let stale = "\"t\":{\"splice\":[[0,0,\"\"]]}"
        let ops = "{\"a\":{\"inc\":1.7e+308},\"b\":{\"inc\":1},\(stale)}"
        #expect(script.event("update", 2, base: 1, ops: ops) == .rejected(.stale))
        #expect(script.event("update", 2, ops: "{\"a\":{\"inc\":1.7e+308},\"b\":{\"inc\":1}}") == .rejected(.type))
        #expect(script.event("update", 2, ops: "{\"a\":{\"inc\":1.7e+308}}") == .rejected(.range))
    }

    @Test("offsets beyond what the author sees, in scalars")
    func range() {
        var script = FoldScript()
        script.event("insert", 1, fields: "{\"t\":\"a😀\\n\"}")
        func splice(_ triples: String) -> String { "{\"t\":{\"splice\":[\(triples)]}}" }
        #expect(script.event("update", ops: splice("[4,0,\"x\"]")) == .rejected(.range))
        #expect(script.event("update", ops: splice("[1,3,\"\"]")) == .rejected(.range))
        #expect(script.event("update", ops: splice("[9007199254740991,9007199254740991,\"\"]")) == .rejected(.range))
        #expect(script.event("update", ops: splice("[0,3,\"\"],[1,0,\"x\"]")) == .rejected(.range))
        #expect(script.event("update", ops: splice("[3,0,\"12\"],[5,0,\"3\"],[1,1,\"\"]")) == .applied)
        #expect(script.value("t") == "\"a\\n123\"")
    }

    @Test("the fold limits an object to 1,024 fields and 768 KiB, and checks this after each part")
    func tooLarge() {
        var script = FoldScript()
        let fields = (0..<1_024).map { "\"f\(10_000 + $0)\":0" }.joined(separator: ",")
        #expect(script.event("insert", fields: "{\(fields)}") == .applied)
        #expect(script.event("update", fields: "{\"x\":1}") == .rejected(.tooLarge))
        #expect(script.event("update", fields: "{\"f10000\":null,\"x\":1}") == .applied)
        #expect(script.fold.object(model: "m", id: "1")?.fields.count == 1_024)

        // The object is {"t":"…"} with exactly 768 KiB.
        let room = 786_432 - 8
        let text = "\"" + String(repeating: "z", count: room) + "\""
        #expect(script.event("insert", id: "2", fields: "{\"t\":\(text)}") == .applied)
        #expect(script.event("update", id: "2", ops: "{\"t\":{\"splice\":[[5,0,\"y\"]]}}") == .rejected(.tooLarge))
        #expect(script.value("t", id: "2") == text)
        #expect(script.event("update", id: "2", ops: "{\"t\":{\"splice\":[[5,1,\"\\\"\"]]}}") == .rejected(.tooLarge))
        #expect(script.event("update", id: "2", ops: "{\"t\":{\"splice\":[[5,2,\"\\\"\"]]}}") == .applied)
        let shrink = FoldScript.part("update", id: "2", ops: "{\"t\":{\"splice\":[[0,9,\"\"]]}}")
        let grow = FoldScript.part("update", id: "2", ops: "{\"t\":{\"splice\":[[0,0,\"123456789\"]]}}")
        #expect(script.batch([grow, shrink]) == .rejected(.tooLarge))
        #expect(script.batch([shrink, grow]) == .applied)
    }
}
