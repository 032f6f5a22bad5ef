import TestSupport
import Testing

@testable import Reel
@testable import ReelClient

/// Random models and edits, without a client.
@Suite struct RandomDifferenceTests {
    private func job(_ random: inout SeededNumbers) -> Job {
        var job = Job(id: "1")
        job.createdAt = Timestamp(ms: random.below(100))
        for _ in 0..<3 { job.change(&random) }
        return job
    }

    private func bytes(_ job: Job) throws -> [UInt8] {
        SyncEvent(try Job.schema.insertion(of: job)).encoded(base: 0)
    }

    private func decoded(_ fields: FieldMap<JSONValue>) throws -> Job { try Job.schema.value(id: "1") { fields[$0] } }

    @Test("the difference of two values, applied to the fields of the first, gives the second") func identity() throws {
        try Seeds.run(2_000) { seed in
            var random = SeededNumbers(seed)
            let old = job(&random)
            var fields = try #require(try Job.schema.insertion(of: old).applied(to: ["unknown": [1]]))
            #expect(try decoded(fields) == old, "REEL_SEED=\(seed)")
            var new = old
            new.change(&random)
            let change = try Job.schema.difference(from: old, to: new, in: fields)
            // Two spellings of one text, such as of “é”, are equal values of Swift with different bytes.
            let isSame = change == nil ? old == new : try old == new && bytes(old) == bytes(new)
            #expect((change == nil) == isSame, "REEL_SEED=\(seed)")
            if let change { fields = try #require(change.applied(to: fields)) }
            #expect(try decoded(fields) == new && fields["unknown"] == [1], "REEL_SEED=\(seed)")
            #expect(try Job.schema.difference(from: new, to: new, in: fields) == nil)
        }
    }

    @Test("a replacement makes any fields show the value, also fields under former names and fields of a wrong type")
    func replacement() throws {
        try Seeds.run(1_000) { seed in
            var random = SeededNumbers(seed)
            let value = job(&random)
            var fields: FieldMap<JSONValue> = ["unknown": [1]]
            for name in ["title", "completed", "deadline", "due", "likes", "words", "tags", "note", "text", "data"] {
                let values: [JSONValue?] = [nil, true, 5, "a", ["a", "b"]]
                if let json = random.pick(values) { fields[name] = json }
            }
            let change = try Job.schema.replacement(by: value, in: fields)
            if let change { fields = try #require(change.applied(to: fields)) }
            #expect(try decoded(fields) == value && fields["unknown"] == [1], "REEL_SEED=\(seed)")
        }
    }

    @Test("an edit made on an older value fits the fields that others have changed since") func stale() throws {
        try Seeds.run(1_000) { seed in
            var random = SeededNumbers(seed)
            let original = job(&random)
            var (edited, other) = (original, original)
            edited.change(&random)
            other.change(&random)
            let fields = try #require(try Job.schema.insertion(of: other).applied(to: [:]))
            guard let change = try Job.schema.difference(from: original, to: edited, in: fields) else { return }
            let result = try decoded(try #require(change.applied(to: fields)))
            #expect(result.votes == other.votes + edited.votes - original.votes, "REEL_SEED=\(seed)")
            #expect(result.title == (edited.title == original.title ? other : edited).title, "REEL_SEED=\(seed)")
            #expect(result.tags.isSuperset(of: edited.tags.subtracting(original.tags)), "REEL_SEED=\(seed)")
            #expect(result.tags.isDisjoint(with: original.tags.subtracting(edited.tags)), "REEL_SEED=\(seed)")
        }
    }
}
