import Testing

@testable import ReelCore

/// Why a consumed event is rejected, row by row.
@Suite struct FoldRejectionTests {
    @Test("a base at or behind the event's own seq")
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
        // Both parts see the state before the batch, whatever the first one wrote.
        let write = FoldScript.part("update", fields: "{\"a\":5}")
        let check = FoldScript.part("update", guards: "{\"a\":-1}")
        #expect(script.batch([write, check]) == .applied)
        let make = FoldScript.part("insert", id: "2", fields: "{\"a\":1}")
        let other = FoldScript.part("delete", id: "2", guards: "{\"a\":-1}")
        #expect(script.batch([make, other]) == .applied)
        // A guard comes before type.
        #expect(script.event("update", guards: "{\"a\":0}", ops: "{\"a\":{\"add\":[1]}}") == .rejected(.guard))
    }

    @Test("a splice of a text that somebody has written anew since")
    func staleSplice() {
        var script = FoldScript()
        script.event("insert", 1, fields: "{\"t\":\"one\"}")
        script.noop(2)
        script.event("update", 1, fields: "{\"t\":\"two\"}")
        let splice = "{\"t\":{\"splice\":[[0,0,\"x\"]]}}"
        #expect(script.event("update", 2, base: 1, ops: splice) == .rejected(.stale))
        #expect(script.event("update", 1, base: 1, ops: splice) == .applied)
        // A number written since is stale too, before its type is looked at.
        script.event("update", 1, fields: "{\"t\":1}")
        #expect(script.event("update", 2, base: 4, ops: splice) == .rejected(.stale))
        #expect(script.event("update", 2, ops: splice) == .rejected(.type))
        // A removed field has no last write.
        script.event("update", 1, fields: "{\"t\":null}")
        #expect(script.event("update", 2, base: 1, ops: splice) == .rejected(.stale))
        #expect(script.fold.site(FoldScript.site(2))?.refused == script.fold.seq)
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
        // Only strings count: a number that was rejected leaves no offsets.
        let before = script.fold.site(FoldScript.site(1))?.refused
        #expect(script.event("update", fields: "{\"n\":1}", guards: "{\"t\":7}") == .rejected(.guard))
        #expect(script.fold.site(FoldScript.site(1))?.refused == before)
        #expect(script.event("update", fields: "{\"n\":\"s\"}", guards: "{\"t\":7}") == .rejected(.guard))
        #expect(script.fold.site(FoldScript.site(1))?.refused == script.fold.seq)
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
        // A text that was spliced is a string still.
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

    @Test("an object of more than 1,024 fields or 768 KiB, measured behind each part")
    func tooLarge() {
        var script = FoldScript()
        let fields = (0..<1_024).map { "\"f\(10_000 + $0)\":0" }.joined(separator: ",")
        #expect(script.event("insert", fields: "{\(fields)}") == .applied)
        #expect(script.event("update", fields: "{\"x\":1}") == .rejected(.tooLarge))
        #expect(script.event("update", fields: "{\"f10000\":null,\"x\":1}") == .applied)
        #expect(script.fold.object(model: "m", id: "1")?.fields.count == 1_024)

        // {"t":"…"} of exactly 768 KiB.
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
