import ReelClient
import Testing

@testable import Reel

/// Objects to values and back, by hand.
@Suite struct CodingTests {
    private func job(_ fields: FieldMap<JSONValue>) throws(ModelProblem) -> Job {
        var fields = fields
        if fields["createdAt"] == nil { fields["createdAt"] = 5 }
        return try Job.schema.value(id: "1") { fields[$0] }
    }

    private func change(_ fields: FieldMap<JSONValue> = [:], _ edit: (inout Job) -> Void) throws -> SyncChange? {
        let old = try job(fields)
        var new = old
        edit(&new)
        return try Job.schema.difference(from: old, to: new, in: fields)
    }

    // MARK: Reading

    @Test("a field that was never written has its default, and a field of another app is ignored") func defaults()
        throws
    {
        var expected = Job(id: "1")
        expected.createdAt = Timestamp(ms: 5)
        #expect(try job(["unknown": [1]]) == expected)
    }

    @Test("the former name of a field is read until the present one is written") func formerly() throws {
        #expect(try job(["completed": true]).isDone)
        #expect(try job(["completed": true, "done": false]).isDone == false)
        #expect(try job(["words": ["a"], "text": "x", "likes": 2]).tags == ["a"])
    }

    @Test("an unknown case of an enum shows as the default, and an unknown element of a set is left out")
    func unknownCases() throws {
        #expect(try job(["label": "someday"]).label == .none)
    }

    @Test("an object that no model can read is a problem with its place")
    func problems() throws {
        let missing = #expect(throws: ModelProblem.self) { try Job.schema.value(id: "1") { _ in nil } }
        #expect(missing?.kind == .missingConstant && missing?.field == "createdAt")
        let wrong = #expect(throws: ModelProblem.self) { try job(["votes": "many"]) }
        #expect(wrong?.kind == .value && wrong?.object == ObjectName("job", id: "1"))
        #expect("\(try #require(wrong))" == #"job/1.votes: found "many", expected an integer between −2^53 and 2^53"#)
        for fields: FieldMap<JSONValue> in [
            ["title": 1], ["done": "yes"], ["due": true], ["steps": [1]], ["tags": "a"], ["tags": [1]], ["note": []],
            ["data": "\u{100}"], ["data": 1], ["list": ""], ["rank": "0"], ["label": [1]], ["completed": 1],
        ] {
            let problem = #expect(throws: ModelProblem.self) { try job(fields) }
            #expect(problem?.kind == .value && (problem?.description.utf8.count ?? 0) < 200)
        }
    }

    @Test("a model that makes a value of another id is a problem") func wrongID() {
        struct Forgetful: Model {
            let id: ModelID<Forgetful>
            init(id: ModelID<Forgetful>) { self.id = "0" }
            static let schema = Schema<Forgetful>("forgetful") {}
        }
        let problem = #expect(throws: ModelProblem.self) { try Forgetful.schema.value(id: "1") { _ in nil } }
        #expect(problem?.kind == .id)
    }

    // MARK: Inserts

    @Test("an insert writes all fields except empty ones, with guards for constants") func insertion() throws {
        var job = Job(id: "1")
        job.createdAt = Timestamp(ms: 5)
        job.tags = ["b", "a"]
        job.data = [0, 255]
        job.isExpanded = true
        let expected = SyncChange.insert(
            "job",
            id: "1",
            [
                "createdAt": 5, "title": "", "done": false, "priority": 1.5, "label": "none", "steps": [],
                "tags": ["a", "b"], "data": "\u{0}\u{FF}", "rank": "a0",
            ]
        ).guarded(["createdAt": -1])
        #expect(try Job.schema.insertion(of: job) == expected)
    }

    @Test("a value that no field can hold, and an id that no object can have, are problems") func badValues() {
        var job = Job(id: "1")
        job.priority = .nan
        let value = #expect(throws: ModelProblem.self) { try Job.schema.insertion(of: job) }
        #expect(value?.field == "priority" && value?.found == "nan")
        let id = #expect(throws: ModelProblem.self) { try Job.schema.insertion(of: Job(id: "")) }
        #expect(id?.kind == .id)
    }

    // MARK: Differences

    @Test("equal values have no difference, whatever the object holds besides") func noDifference() throws {
        #expect(try change { _ in } == nil)
        #expect(try change(["label": "someday", "unknown": 1, "completed": true]) { $0.isExpanded = true } == nil)
    }

    @Test("each kind of field sends its own smallest change") func kinds() throws {
        func update(_ fields: FieldMap<JSONValue>) -> SyncChange { .update("job", id: "1", fields) }
        func update(_ name: String, _ operation: FieldOperation) -> SyncChange {
            .update("job", id: "1", operations: [name: operation])
        }
        #expect(try change { $0.title = "x" } == update(["title": "x"]))
        #expect(try change(["due": 5]) { $0.due = nil } == update(["due": nil]))
        #expect(try change(["votes": 5]) { $0.votes += 2 } == update("votes", .increment(2)))
        #expect(
            try change(["tags": ["a", "b"]]) { $0.tags = ["b", "d", "c"] }
                == update("tags", .change(add: ["c", "d"], remove: ["a"]))
        )
        #expect(
            try change(["note": "one two"]) { $0.note = "one or two" }
                == update("note", .splice([TextSplice(at: 4, inserting: "or ")]))
        )
        #expect(
            try change(["data": "abc"]) { $0.data[1] = 0xFF }
                == update("data", .splice([TextSplice(at: 1, removing: 1, inserting: "\u{FF}")]))
        )
        #expect(try change { $0.list = Ref("l") } == update(["list": "l"]))
    }

    @Test("a changed constant and a changed id are problems") func constants() {
        let constant = #expect(throws: ModelProblem.self) { try change { $0.createdAt = Timestamp(ms: 6) } }
        #expect(constant?.kind == .changedConstant && constant?.found == "6" && constant?.expected == "the constant 5")
        let id = #expect(throws: ModelProblem.self) { try change { $0 = Job(id: "2") } }
        #expect(id?.kind == .id)
    }

    @Test("the first write of a renamed field takes the former value along") func renamed() throws {
        let old: FieldMap<JSONValue> = [
            "likes": 5, "words": ["a", "b"], "text": "one", "deadline": 7, "completed": true,
        ]
        let edited = try change(old) {
            $0.votes += 1
            $0.tags.remove("a")
            $0.note += "!"
            $0.due = nil
            $0.isDone = false
        }
        #expect(
            edited
                == .update(
                    "job",
                    id: "1",
                    ["votes": 6, "tags": ["b"], "note": "one!", "due": nil, "deadline": nil, "done": false]
                )
        )
    }

    @Test("an element is removed in each spelling that the object has, and unknown elements stay") func spellings()
        throws
    {
        let tags: FieldMap<JSONValue> = ["tags": ["e\u{301}", "\u{E9}", "x"]]
        let change = try #require(try change(tags) { $0.tags.remove("\u{E9}") })
        #expect(change.applied(to: tags)?["tags"] == ["x"])
        let labels = SetDifference.self
        let present: JSONValue = ["later", "someday", "urgent"]
        let old: Set<Label> = try labels.elements(of: present)
        #expect(old == [.later, .urgent])
        #expect(
            try labels.operation(from: old, to: [.urgent, .none], in: present)
                == .change(add: ["none"], remove: ["later"])
        )
    }

    @Test("the removal of most of a large set takes no time that grows with its square") func largeSet() throws {
        let old = Set(0..<100_000)
        let present = try SetDifference.json(of: old)
        let operation = try SetDifference.operation(from: old, to: [7], in: present)
        guard case .change(let add, let remove) = operation else {
            Issue.record("found \(String(describing: operation))")
            return
        }
        #expect(add.isEmpty && remove.count == 99_999 && !remove.contains(7))
    }

    @Test("a count beyond ±2^53 and a change that no number holds are problems") func bigCounts() throws {
        let limit = 9_007_199_254_740_992
        #expect(throws: FieldValueError.self) { try Schema<Job>.increment(from: limit, to: limit + 1) }
        #expect(throws: FieldValueError.self) { try Schema<Job>.increment(from: -limit, to: limit - 1) }
        #expect(throws: FieldValueError.self) { try Schema<Job>.increment(from: .min, to: limit) }
        #expect(try Schema<Job>.increment(from: -1, to: limit - 1) == .increment(Double(limit)))
    }

    // MARK: Replacements

    @Test("a replacement writes what the object does not show already, and leaves unknown fields and cases")
    func replacement() throws {
        let fields: FieldMap<JSONValue> = [
            "createdAt": 5, "title": "a", "votes": 3, "note": "x", "label": "someday", "unknown": 1, "completed": true,
        ]
        var value = try job(fields)
        #expect(try Job.schema.replacement(by: value, in: fields) == nil)
        value.votes = 1
        value.note = ""
        let change = try Job.schema.replacement(by: value, in: fields)
        #expect(change == .update("job", id: "1", ["votes": 1, "note": nil]))
        value.createdAt = Timestamp(ms: 6)
        #expect(throws: ModelProblem.self) { try Job.schema.replacement(by: value, in: fields) }
    }

    @Test("a replacement repairs an object that the model cannot read") func repair() throws {
        let broken: FieldMap<JSONValue> = ["votes": "many", "unknown": 1]
        var value = Job(id: "1")
        value.votes = 2
        let change = try #require(try Job.schema.replacement(by: value, in: broken))
        #expect(change.guards == ["createdAt": -1])
        let fields = try #require(change.applied(to: broken))
        #expect(try Job.schema.value(id: "1") { fields[$0] } == value && fields["unknown"] == 1)
    }
}
