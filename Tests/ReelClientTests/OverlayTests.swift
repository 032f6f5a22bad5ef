import TestSupport
import Testing

@testable import ReelClient
@testable import ReelCore

@Suite struct OverlayTests {
    private let keys = OverlaySimulation.ids.map { Fold.key(model: "m", id: $0) }

    @Test("under any faults, a device shows the confirmed fold after the events of its queue")
    func whateverHappensWhatIs() throws {
        var applied = 0
        try Seeds.run(20) { seed in
            var simulation = OverlaySimulation(seed: seed)
            for turn in 0..<120 {
                simulation.turn()
                if simulation.chance(70) { simulation.look() }
                try expectAsItMustBe(&simulation, "seed \(seed), turn \(turn)")
            }
            let isDone = simulation.drain()
            #expect(isDone, "seed \(seed): \(simulation.stream.outbox.entries.count) events wait")
            simulation.look()
            #expect(simulation.stream.look().isEmpty, "seed \(seed)")
            for key in keys {
                let shown = simulation.shown(key)
                #expect(shown == simulation.truth.object(key), "seed \(seed)")
            }
            applied += simulation.outcomes.count { if case .applied = $0 { true } else { false } }
        }
        #expect(applied > 50, "nothing has happened")
    }

    @Test("a device hides a splice as soon as the fold rejects the text event that it depends on")
    func hidesDependentSplice() throws {
        var simulation = OverlaySimulation(seed: 1)
        let other = simulation.others[0]
        func others(_ event: SyncEvent, _ op: Op) -> [UInt8] {
            event.encoded(base: -1, author: EventID(site: other, op: op))
        }
        simulation.append(others(.batch([.insert("m", id: "0"), .insert("m", id: "1", ["text": "ab"])]), 0))
        simulation.fold(1)
        let stream = simulation.stream
        func edit(_ id: String, _ offset: Int64, _ text: String) -> SyncChange {
            .update("m", id: id, operations: ["text": .splice([TextSplice(at: offset, removing: 0, inserting: text)])])
        }
        _ = stream.outbox.add(.batch([edit("0", 0, "own"), edit("1", 2, "c")]), base: 0, isKnown: true)
        _ = stream.outbox.add(SyncEvent(edit("1", 3, "d")), base: 0, isKnown: true)
        #expect(stream.visible("m", "0")?["text"] == "own" && stream.visible("m", "1")?["text"] == "abcd")
        // The other device deletes the first object before the log has the remaining events.
        simulation.append(others(.delete("m", id: "0"), 1))
        stream.outbox.connected()
        simulation.send()
        simulation.arrive(calm: true)
        simulation.fold(2)
        #expect(stream.outbox.entries.count == 1, "the splice has not come back yet")
        #expect(stream.visible("m", "1")?["text"] == "ab", "but everybody will reject it")
        try expectAsItMustBe(&simulation, "before its return")
    }

    @Test("a device does not treat events of its former site as events of the new one") func formerSiteEvents()
        throws
    {
        var simulation = OverlaySimulation(seed: 2)
        let (stream, was) = (simulation.stream, simulation.stream.outbox.site)
        _ = stream.outbox.add(.insert("m", id: "2"), base: -1, isKnown: false)
        _ = stream.outbox.add(.insert("m", id: "0", ["text": "ab"]), base: -1, isKnown: false)
        simulation.send()
        try expectAsItMustBe(&simulation, "sent")
        // Another device has written under the same site.
        simulation.append(SyncEvent.insert("m", id: "1").encoded(base: -1, author: EventID(site: was, op: 0)))
        simulation.fold(1)
        #expect(stream.outbox.site != was)
        let edit = FieldOperation.splice([TextSplice(at: 2, removing: 0, inserting: "c")])
        _ = stream.outbox.add(.update("m", id: "0", operations: ["text": edit]), base: 0, isKnown: true)
        try expectAsItMustBe(&simulation, "as another site")
    }

    @Test("a device hides a sent event as soon as the horizon passes the event's base") func hidesBelowHorizon() throws
    {
        var simulation = OverlaySimulation(seed: 3)
        let (stream, author) = (simulation.stream, EventID(site: simulation.others[0], op: 0))
        simulation.append(SyncEvent.insert("m", id: "0", ["text": "ab"]).encoded(base: -1, author: author))
        simulation.fold(1)
        let edit = FieldOperation.splice([TextSplice(at: 2, removing: 0, inserting: "c")])
        _ = stream.outbox.add(.update("m", id: "0", operations: ["text": edit]), base: 0, isKnown: true)
        _ = stream.outbox.add(.insert("m", id: "1"), base: 0, isKnown: false)
        simulation.send()
        _ = stream.outbox.add(.insert("m", id: "2"), base: 0, isKnown: false)
        #expect(stream.visible("m", "0")?["text"] == "abc" && stream.visible("m", "1") != nil)

        var fold = try #require(stream.fold)
        fold.marks = (1...Limits.marks).map { Seq($0) }
        fold.advance(to: 100)
        var progress = View.Progress()
        #expect(stream.view?.install(fold, owns: stream.outbox.owns, &progress) == true)
        #expect(stream.visible("m", "0")?["text"] == "ab")
        #expect(stream.visible("m", "1") == nil, "it was sent with its base")
        #expect(stream.visible("m", "2") != nil, "it is made anew before it is sent")
    }

    @Test("a reader reads all objects after a new fold, without a list of changed names") func readsAllAfterSnapshot() {
        var simulation = OverlaySimulation(seed: 5)
        let author = EventID(site: simulation.others[0], op: 0)
        simulation.append(SyncEvent.insert("m", id: "0").encoded(base: -1, author: author))
        simulation.loadSnapshot()
        simulation.stream.follow()
        #expect(simulation.stream.visible("m", "0") != nil)
        #expect(simulation.stream.news.isEmpty)
    }

    private func expectAsItMustBe(_ simulation: inout OverlaySimulation, _ place: String) throws {
        let expected = try #require(simulation.expected(), "\(place): the fold has had an event of the queue")
        for key in keys {
            let (shown, wanted) = (simulation.shown(key), expected.object(key))
            #expect(shown?.isDeleted == wanted?.isDeleted, "\(place)")
            #expect(shown?.fields.map(\.name) == wanted?.fields.map(\.name), "\(place)")
            #expect(shown?.fields.map(\.value) == wanted?.fields.map(\.value), "\(place)")
            // A reader that reads only the objects in its batches of changes shows the same.
            simulation.look()
            #expect(simulation.told[key] == shown, "\(place): nobody was told")
        }
        #expect(simulation.falseNews.isEmpty, "\(place): told of what looks the same")
        let listed = simulation.stream.visible("m").map(\.name.id)
        #expect(listed == OverlaySimulation.ids.filter { expected.object(model: "m", id: $0)?.isDeleted == false })
    }
}
