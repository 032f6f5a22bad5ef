import ReelCore
import TestSupport
import Testing

@testable import ReelClient

@Suite(.timeLimit(.minutes(5))) struct ReductionTests {
    @Test("a reduced queue has the same effect and the same outcomes as the events that were published")
    func sameEffect() {
        var (sent, published, dropped, lost) = (0, 0, 0, 0)
        Seeds.run(50) { seed in
            var simulation = ReductionSimulation(seed: seed)
            for _ in 0..<90 { simulation.turn() }
            guard var (reduced, plain) = simulation.deliver() else {
                Issue.record("seed \(seed)")
                return
            }
            expectSame(reduced.fold, plain.fold, simulation, "seed \(seed)")
            for event in simulation.published {
                let (expected, found) = (plain.classes[event.entry.number], reduced.classes[event.carrier])
                // This event became superfluous through a delete or a cancelled insert. It has no effect that could
                // differ.
                if found == nil || found == .reduced { continue }
                #expect(found == expected, "seed \(seed): \(event.entry.number) \(event.entry.event)")
                if expected == .lost { lost += 1 }
            }
            // Other devices edit the texts without having read the queue.
            let world = simulation.world
            for (place, id) in OverlaySimulation.ids.enumerated() {
                let author = EventID(site: world.others[0], op: world.otherOps[0] + Op(place))
                let edit = SyncEvent.update(
                    "m",
                    id: id,
                    operations: [
                        "text": .splice([
                            TextSplice(at: 0, removing: 0, inserting: "<"),
                            TextSplice(at: 1, removing: 0, inserting: ">"),
                        ])
                    ]
                )
                let value = edit.encoded(base: world.truth.seq, author: author)
                _ = OverlaySimulation.apply(value, to: &reduced.fold, at: reduced.fold.seq + 1)
                _ = OverlaySimulation.apply(value, to: &plain.fold, at: plain.fold.seq + 1)
            }
            expectSame(reduced.fold, plain.fold, simulation, "seed \(seed), after edits of others")
            sent += reduced.sent
            published += plain.sent
            dropped += simulation.dropped
        }
        guard TestSeed.given == nil else { return }
        #expect(sent * 4 < published * 3, "\(sent) events sent for \(published)")
        #expect(dropped > 0 && lost > 0)
    }

    @Test(
        "a device merges splices across own events and events of other objects, not across other edits of the text"
    )
    func editsOfOthers() throws {
        var world = OverlaySimulation(seed: 1)
        let other = world.others[0]
        func write(_ event: SyncEvent, _ op: Op) {
            world.append(event.encoded(base: world.truth.seq, author: .init(site: other, op: op)))
            world.fold(1)
        }
        func splice(_ offset: Int64, _ text: String) -> SyncEvent {
            .update("m", id: "0", operations: ["text": .splice([TextSplice(at: offset, removing: 0, inserting: text)])])
        }
        func type(_ offset: Int64, _ text: String) throws {
            _ = try world.stream.add(splice(offset, text), base: world.stream.seq, read: nil)
        }
        write(.insert("m", id: "0", ["text": "text"]), 0)
        world.stream.sync.isComplete = true
        try type(4, "a")
        write(.update("m", id: "0", ["n": 1]), 1)
        try type(5, "b")
        #expect(world.stream.outbox.entries.map(\.event) == [splice(4, "ab")])
        write(splice(0, "the "), 2)
        try type(10, "c")
        #expect(world.stream.outbox.entries.map(\.event) == [splice(4, "ab"), splice(10, "c")])
        #expect(world.stream.visible("m", "0")?["text"] == "the textabc")
    }

    private func expectSame(_ a: Fold, _ b: Fold, _ simulation: ReductionSimulation, _ place: String) {
        for id in simulation.allIDs {
            let (x, y) = (look(a, id), look(b, id))
            #expect(x == y, "\(place): \(id)")
        }
    }

    /// The fields of an object and their values; nil if it does not exist or was deleted.
    private func look(_ fold: Fold, _ id: String) -> [String]? {
        guard let object = fold.object(model: "m", id: id), !object.isDeleted else { return nil }
        return object.fields.map { field in
            "\(String(decoding: field.name, as: UTF8.self)): \(String(decoding: field.value, as: UTF8.self))"
        }
    }
}
