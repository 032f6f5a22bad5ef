import ReelCore
import Testing

@testable import ReelClient

/// The work that the queue causes: the number of times that the overlay applies an event to the confirmed objects.
@Suite(.timeLimit(.minutes(5))) struct QueueWorkTests {
    private let other = Site(high: 7, low: 7)

    private func splice(_ id: String, _ offset: Int, _ text: String) -> SyncEvent {
        .update(
            "m",
            id: id,
            operations: ["text": .splice([TextSplice(at: Int64(offset), removing: 0, inserting: text)])]
        )
    }

    /// Returns a device that has read a stream with these events of another device.
    private func device(_ events: [SyncEvent]) -> OverlaySimulation {
        var world = OverlaySimulation(seed: 1)
        for (op, event) in events.enumerated() { write(event, Op(op), &world) }
        world.fold(events.count)
        world.stream.sync.isComplete = true
        return world
    }

    private func write(_ event: SyncEvent, _ op: Op, _ world: inout OverlaySimulation) {
        world.append(event.encoded(base: world.truth.seq, author: .init(site: other, op: op)))
    }

    private func layCount(_ world: OverlaySimulation) -> Int { world.stream.look().layCount }

    @Test("events of other devices on other objects apply no waiting event again, even when the horizon moves")
    func othersCostNothing() throws {
        var world = device([.insert("m", id: "other")])
        let count = 2_000
        for id in 0..<count { _ = try world.stream.add(.insert("m", id: "own\(id)"), base: 0, read: nil) }
        for id in 0..<count {
            // Nothing merges with a guarded event.
            let splice = SyncChange.update(
                "m",
                id: "own\(id)",
                operations: ["text": .splice([TextSplice(at: 0, removing: 0, inserting: "a")])]
            )
            _ = try world.stream.add(SyncEvent(splice.guarded(["n": -1])), base: 0, read: nil)
        }
        #expect(world.stream.outbox.entries.count == 2 * count)
        var before = layCount(world)
        for op in 1...100 {
            write(.update("m", id: "other", ["n": .number(Double(op))]), Op(op), &world)
            world.fold(1)
            world.look()
        }
        #expect(layCount(world) == before)
        // The horizon passes the bases of all splices 16 marks later, and the overlay applies them again with their
        // objects. More texts are lost than a site has marks for. One mark replaces these marks, and all splices are
        // applied again.
        let events = Int(Limits.markEvery) * (Limits.marks + 1)
        for op in 101..<events {
            write(.update("m", id: "other", ["n": .number(Double(op))]), Op(op), &world)
            if op.isMultiple(of: 512) {
                world.fold(512)
                world.stream.follow()
            }
        }
        world.fold(events)
        before = layCount(world) - before
        #expect(world.stream.fold?.horizon ?? 0 > 0)
        #expect(before <= 4 * count, "\(before) events laid")
        #expect(world.stream.look().isRefused(Int64(2 * count)), "its base is too old")
    }

    @Test("an event of another device applies again only the waiting events of its object")
    func touchedOnly() throws {
        var world = device((0..<100).map { .insert("m", id: "\($0)", ["n": 0]) })
        for round in 0..<10 {
            for id in 0..<100 {
                let change = SyncChange.update("m", id: "\(id)", ["f\(round)": 1]).guarded(["f\(round)": -1])
                _ = try world.stream.add(SyncEvent(change), base: 99, read: nil)
            }
        }
        let before = layCount(world)
        write(.update("m", id: "50", ["n": 1]), 100, &world)
        world.fold(1)
        #expect(layCount(world) - before == 10)
    }

    @Test(
        "the overlay applies each of 20,000 keystrokes in one text a few times at most, between writes to other objects"
    )
    func typing() throws {
        let world = device(
            [.insert("m", id: "note", ["text": ""])] + (0..<10).map { .insert("m", id: "\($0)", ["n": 0]) }
        )
        let before = layCount(world)
        let count = 20_000
        for key in 0..<count {
            _ = try world.stream.add(splice("note", key, "x"), base: world.stream.seq, read: nil)
            guard key.isMultiple(of: 10) else { continue }
            let write = SyncEvent.update("m", id: "\(key / 10 % 10)", ["n": .number(Double(key + 1))])
            _ = try world.stream.add(write, base: world.stream.seq, read: nil)
        }
        let laid = layCount(world) - before
        #expect(laid <= 2 * count, "\(laid) events laid")
        #expect(world.stream.visible("m", "note")?["text"]?.string?.count == count)
        #expect(world.stream.outbox.entries.count <= 50, "\(world.stream.outbox.entries.count) events to send")
    }

    @Test("a rejected event applies again only the events of its own objects")
    func rejections() throws {
        var world = device((0..<200).map { .insert("m", id: "\($0)", ["n": 0]) })
        for id in 0..<200 {
            let title = SyncChange.update("m", id: "\(id)", ["text": "title"]).guarded(["n": Seq(id)])
            _ = try world.stream.add(SyncEvent(title), base: 199, read: nil)
        }
        // These are few events, so that no mark for all texts is made.
        for id in 0..<10 { write(.update("m", id: "\(id)", ["n": 1]), 200 + Op(id), &world) }
        world.fold(10)
        let before = layCount(world)
        world.stream.outbox.connected()
        for _ in 0..<100 {
            world.send()
            world.arrive(calm: true)
            world.fold(1)
            world.look()
        }
        #expect(world.outcomes.count >= 90)
        #expect(layCount(world) - before < 200, "\(layCount(world) - before) events laid")
    }

    @Test("the overlay applies each event once while a queue of many objects becomes empty")
    func draining() throws {
        let count = 3_000
        var world = device([.insert("m", id: "0")])
        for id in 0..<count { _ = try world.stream.add(.insert("m", id: "own\(id)", ["n": 1]), base: 0, read: nil) }
        drain(&world)
        #expect(world.stream.outbox.entries.isEmpty)
        #expect(layCount(world) == count)
    }

    @Test("the overlay applies each insert once when inserts with random ids and their deletes cancel each other")
    func cancelling() throws {
        let count = 4_000
        let world = device([.insert("m", id: "0")])
        let changes = (0..<count).map { _ in SyncChange.insert("m", ["n": 1]) }
        for change in changes { _ = try world.stream.add(SyncEvent(change), base: 0, read: nil) }
        for change in changes { _ = try world.stream.add(.delete("m", id: change.id), base: 0, read: nil) }
        #expect(world.stream.outbox.entries.isEmpty)
        #expect(layCount(world) == count)
    }

    private func drain(_ world: inout OverlaySimulation) {
        let window = Outbox.Window(events: 100, bytes: 64 << 10)
        world.stream.outbox.connected()
        var turns = 0
        while !world.stream.outbox.entries.isEmpty, turns < 10_000 {
            turns += 1
            let fold = world.stream.fold
            while let parcel = world.stream.outbox.nextBatch(
                window,
                base: world.stream.seq,
                horizon: -1,
                confirmed: fold,
                nowMs: 0
            ) {
                for value in parcel.events {
                    world.append(value)
                    let op = value.withUnsafeBytes { EventIntake.author(of: $0)?.op } ?? -1
                    let author = EventID(site: world.stream.outbox.site, op: op)
                    world.stream.outbox.acked(author, seq: world.truth.seq, folded: world.stream.seq, nowMs: 0)
                }
            }
            world.fold(100)
            world.stream.follow()
            world.stream.unwrittenWrites = []
            _ = world.stream.outbox.takeNotices()
        }
    }
}
