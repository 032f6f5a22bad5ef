import ReelClient
import ReelCore
import TestSupport
import Testing

@testable import ClientTestSupport
@testable import Reel

/// Typed writes of two devices, with nodes in memory.
@Suite(.timeLimit(.minutes(5))) struct TwoDeviceTests {
    /// An earlier version of `Job`: other names, a field that the present version does not have, and fewer cases.
    private struct EarlierJob: Model, Equatable {
        enum Label: String, FieldValue { case none, blocked }

        let id: ModelID<EarlierJob>
        var createdAt = Timestamp(ms: 0)
        var title = ""
        var isCompleted = false
        var label = Label.none
        var owner: String?
        var votes = 0
        var tags: Set<String> = []

        init(id: ModelID<EarlierJob>) { self.id = id }

        static let schema = Schema<EarlierJob>("job") {
            Constant("createdAt", \.createdAt)
            Field("title", \.title)
            Field("completed", \.isCompleted)
            Field("label", \.label)
            Field("owner", \.owner)
            Counter("votes", \.votes)
            MergedSet("tags", \.tags)
        }
    }

    private let network: FakeNetwork
    private let first: SyncClient
    private let second: SyncClient

    init() throws {
        network = try FakeNetwork()
        first = try network.client(nodes: ["a"], seed: 5)
        second = try network.client(nodes: ["b"], seed: 6)
    }

    private func open(_ client: SyncClient, _ model: any Model.Type = Job.self) async throws -> Dataset {
        try await client.open("s", models: [model], from: .beginning)
    }

    private func close() async {
        await first.close()
        await second.close()
    }

    @Test("a condition holds until another device writes the property") func condition() async throws {
        let (one, two) = (try await open(first), try await open(second))
        let original = Job(id: "1")
        _ = try await one.insert(original).outcome()
        try await network.heal([one, two])
        try await network.cut(["b"])
        _ = try await one.update(original.id) { $0.title = "one" }.outcome()
        let write = try await two.update(original.id, if: .unchanged(\.title, since: original)) { $0.votes += 1 }
        #expect(write.event.changes.first?.guards == ["title": 0])
        let other = try await two.update(original.id, if: .unchanged(\.note, \.isDone, since: original)) {
            $0.votes += 10
        }
        #expect(other.event.changes.first?.guards == ["note": -1, "text": -1, "done": 0, "completed": -1])
        try await network.heal([one, two])
        guard case .rejected(.guard, _) = try await write.outcome() else { throw Unexpected() }
        guard case .applied = try await other.outcome() else { throw Unexpected() }
        #expect(try one.object(original.id)?.votes == 10)
        let changed = await #expect(throws: ReelError.self) {
            try await two.update(original.id, if: .unchanged(\.title, since: original)) { $0.votes += 1 }
        }
        #expect(changed?.code == .guard)
        await close()
    }

    @Test("a condition on a property with an own write that waits is refused, and one outside the schema too")
    func badConditions() async throws {
        let one = try await open(first)
        let original = Job(id: "1")
        _ = try await one.insert(original).outcome()
        try await network.cut(["a"])
        try await one.update(original.id) { $0.title = "x" }
        let present = try #require(try one.object(original.id))
        let waiting = await #expect(throws: ReelError.self) {
            try await one.delete(original.id, if: .unchanged(\.title, since: present))
        }
        #expect(waiting?.code == .guard)
        let outside = await #expect(throws: ModelProblem.self) {
            try await one.delete(original.id, if: .unchanged(\.isExpanded, since: present))
        }
        #expect(outside?.kind == .property)
        var other = Job(id: "2")
        other.label = present.label
        let foreign = await #expect(throws: ModelProblem.self) {
            try await one.update(original.id, if: .unchanged(\.label, since: other)) { $0.votes += 1 }
        }
        #expect(foreign?.kind == .id && foreign?.object == ObjectName("job", id: "1"))
        try await one.delete(original.id, if: .unchanged(\.label, since: present))
        try await network.heal([one])
        #expect(try one.object(original.id) == nil)
        await close()
    }

    @Test("of two inserts of one object, and of two defaults of one field, the first in the log counts")
    func firstInserts() async throws {
        let (one, two) = (try await open(first), try await open(second))
        try await network.heal([one, two])
        try await network.cut(["a", "b"])
        var (mine, theirs) = (Job(id: "1"), Job(id: "1"))
        (mine.createdAt, mine.title, theirs.createdAt, theirs.title) = (.init(ms: 1), "one", .init(ms: 2), "two")
        try await one.insert(mine)
        let late = try await two.insert(theirs)
        (mine.rank, theirs.rank) = (.between(nil, nil), .between(nil, nil))
        var (settings, others) = (Job(id: "settings"), Job(id: "settings"))
        (settings.title, others.title, others.votes) = ("one", "two", 3)
        try await one.insertDefaults(settings)
        let defaults = try await two.insertDefaults(others)
        try await network.on { $0.down = ["b"] }
        try await one.stream.flush(deadline: .seconds(60))
        try await network.heal([one, two])
        guard case .rejected(.guard, _) = try await late.outcome() else { throw Unexpected() }
        for dataset in [one, two] {
            #expect(try dataset.object(ModelID<Job>("1"))?.title == "one")
            let value = try dataset.object(settings.id)
            #expect(value?.title == "one" && value?.votes == 3)
        }
        var applied: [String] = []
        for handle in defaults where try await handle.outcome().isSettledAsApplied {
            applied += handle.event.changes[0].fields.names
        }
        #expect(applied == ["votes"])
        await close()
    }

    @Test("two versions of an app beside each other lose nothing") func versions() async throws {
        let (present, earlier) = (try await open(first), try await open(second, EarlierJob.self))
        var job = Job(id: "1")
        (job.note, job.label, job.due) = ("note", .urgent, Timestamp(ms: 9))
        _ = try await present.insert(job).outcome()
        try await network.heal([present, earlier])
        let id = EarlierJob.ID("1")
        #expect(try earlier.object(id)?.label == EarlierJob.Label.none)
        try await network.cut(["a", "b"])
        try await earlier.update(id) {
            $0.owner = "ann"
            $0.votes += 1
            $0.tags.insert("old")
            $0.isCompleted = true
        }
        try await present.update(job.id) {
            $0.votes += 2
            $0.tags.insert("new")
            $0.title = "x"
        }
        try await network.heal([present, earlier])
        var expected = job
        (expected.title, expected.votes, expected.tags) = ("x", 3, ["old", "new"])
        #expect(try present.object(job.id) == expected)
        let seen = try #require(try earlier.object(id))
        #expect(seen.owner == "ann" && seen.votes == 3 && seen.tags == ["old", "new"] && seen.isCompleted)
        // A save of the earlier version leaves what it does not know.
        var edited = seen
        edited.title = "y"
        _ = try await earlier.save(edited, changedFrom: seen).outcome()
        try await earlier.replace(edited)
        try await network.heal([present, earlier])
        expected.title = "y"
        #expect(try present.object(job.id) == expected)
        #expect(try present.stream.object("job", id: "1")?["owner"] == "ann")
        await close()
    }

    @Test("random edits of two devices with cuts end in equal values") func random() async throws {
        try await Seeds.runAsync(10) { seed in
            let test = try TwoDeviceTests()
            try await test.edit(seed)
            await test.close()
        }
        await close()
    }

    private func edit(_ seed: UInt64) async throws {
        var random = SeededNumbers(seed)
        let datasets = [try await open(first), try await open(second)]
        let ids = ["1", "2"].map { Job.ID($0) }
        for id in ids { _ = try await datasets[0].insert(Job(id: id)).outcome() }
        try await network.heal([datasets[0], datasets[1]])
        var votes = 0
        for _ in 0..<5 {
            try await network.cut(Set(["a", "b"].filter { _ in random.oneIn(2) }))
            for _ in 0..<6 {
                let (dataset, id) = (random.pick(datasets), random.pick(ids))
                let original = try #require(try dataset.object(id), "REEL_SEED=\(seed)")
                var edited = original
                edited.change(&random)
                votes += edited.votes - original.votes
                let before = await dataset.stream.queue().map(\.event)
                let write = try await dataset.save(edited, changedFrom: original)
                if edited == original {
                    let after = await dataset.stream.queue().map(\.event)
                    #expect(write.event.changes.isEmpty && after.count <= before.count, "REEL_SEED=\(seed)")
                }
            }
            try await network.heal([datasets[0], datasets[1]])
            let (one, two) = (try datasets[0].objects(of: Job.self), try datasets[1].objects(of: Job.self))
            #expect(one == two && one.problems.isEmpty, "REEL_SEED=\(seed)")
            #expect(one.values.map(\.votes).reduce(0, +) == votes, "REEL_SEED=\(seed)")
        }
        let digests = (await datasets[0].stream.digest(), await datasets[1].stream.digest())
        #expect(digests.0 == digests.1 && digests.0 != nil, "REEL_SEED=\(seed)")
    }

    private struct Unexpected: Error {}
}

extension PublishOutcome {
    fileprivate var isSettledAsApplied: Bool {
        if case .applied = self { true } else { false }
    }
}
