import ReelClient
import Synchronization
import TestSupport
import Testing

@testable import Reel

/// Several builds of one app, which share a stream. Their schemas change from seed to seed.
@Suite(.serialized, .timeLimit(.minutes(60))) struct RandomModelTests {
    @Test("random models and edits on all devices end as the checker folds them") func checked() async throws {
        try await Seeds.runAsync(40) { seed in
            var run = try RandomModelRun(seed: seed)
            try await run.run(steps: 90)
        }
    }

    @Test("the difference of two values, applied to what any build has stored, gives the second value")
    func identity() throws {
        try Seeds.run(300) { seed in
            var random = SeededNumbers(seed)
            Builds.shuffle(&random)
            try identity(OldBuild.self, OldBuild.self, &random)
            try identity(OldBuild.self, NewBuild.self, &random)
            try identity(NewBuild.self, OldBuild.self, &random)
            try identity(OtherBuild.self, NewBuild.self, &random)
        }
    }

    /// Changes a value of one build that another build has stored.
    private func identity<Writer: Build, B: Build>(
        _ writer: Writer.Type,
        _ build: B.Type,
        _ random: inout SeededNumbers
    ) throws {
        let (writerShape, shape) = (Writer.shape.withLock { $0 }, B.shape.withLock { $0 })
        let written = try writerShape.schema.insertion(of: writerShape.item("1", &random))
        let fields = try #require(written.applied(to: [:]))
        let old: Item<B>
        do {
            old = try shape.schema.value(id: "1") { fields[$0] }
        } catch {
            return #expect(error.kind == .missingConstant)
        }
        let new = shape.changed(old, random.next())
        let change = try shape.schema.difference(from: old, to: new, in: fields)
        #expect((change == nil) == (shape.shown(old) == shape.shown(new)))
        let after = try #require(change.map { $0.applied(to: fields) } ?? fields)
        let read = try shape.schema.value(id: "1") { after[$0] }
        #expect(shape.shown(read) == shape.shown(new))
        for (name, value) in fields where !shape.names.contains(name) { #expect(after[name] == value) }
        #expect(try shape.schema.difference(from: read, to: read, in: after) == nil)
        #expect(try shape.schema.replacement(by: read, in: after) == nil)
    }
}
