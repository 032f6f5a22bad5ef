import ReelCore
import Testing

@testable import ReelClient

/// The inserts and deletes of the queue that cancel each other.
@Suite struct CancellingTests {
    @Test("an insert and a delete of an id that was drawn at random cancel each other, and all events between them")
    func randomIDsCancel() throws {
        var outbox = Outbox(seed: 1)
        let change = SyncChange.insert("m", ["a": 1])
        let insert = outbox.add(SyncEvent(change), base: 0, isKnown: false)
        _ = outbox.add(.insert("m", id: "2"), base: 0, isKnown: false)
        _ = outbox.add(.update("m", id: change.id, ["a": 2]), base: 0, isKnown: false)
        let delete = outbox.add(.delete("m", id: change.id), base: 0, isKnown: false)
        #expect(outbox.entries.map(\.event) == [.insert("m", id: "2")])
        let settled = outbox.takeNotices()
        #expect(settled.contains(.settled(number: insert, .superseded)))
        #expect(settled.contains(.settled(number: delete, .superseded)))
        #expect(outbox.isCancelled(.insert("m", id: change.id)))
        // In a stream with the object's tombstone, another delete changes nothing. The same is true here.
        _ = outbox.add(.delete("m", id: change.id), base: 0, isKnown: false)
        _ = outbox.add(.batch([.delete("m", id: change.id), .insert("m", id: "3")]), base: 0, isKnown: false)
        #expect(outbox.entries.map(\.event) == [.insert("m", id: "2"), .batch([.insert("m", id: "3")])])
    }

    @Test("a device sends both the insert and the delete of an id that was not drawn at random")
    func otherIDsAreSent() {
        var outbox = Outbox(seed: 1)
        _ = outbox.add(.insert("m", id: "1", ["a": 1]), base: 0, isKnown: false)
        _ = outbox.add(.insert("m", id: "2"), base: 0, isKnown: false)
        _ = outbox.add(.update("m", id: "1", ["a": 2]), base: 0, isKnown: false)
        _ = outbox.add(.delete("m", id: "1"), base: 0, isKnown: false)
        #expect(
            outbox.entries.map(\.event) == [
                .insert("m", id: "1", ["a": 2]), .insert("m", id: "2"), .delete("m", id: "1"),
            ]
        )
    }

    @Test("a delete does not cancel an insert that was sent, is in a batch, or was queued by an earlier run")
    func insertIsKept() {
        for variant in 0..<3 {
            var outbox = Outbox(seed: 1)
            let change = SyncChange.insert("m", ["a": 1])
            _ = outbox.add(variant == 1 ? .batch([change]) : SyncEvent(change), base: 0, isKnown: false)
            if variant == 0 { _ = outbox.nextBatch(OutboxTests.wide, base: 0, horizon: -1, nowMs: 0) }
            if variant == 2 { outbox = RevivalTests.restarted(outbox) }
            _ = outbox.add(.insert("m", id: change.id), base: 0, isKnown: false)
            _ = outbox.add(.delete("m", id: change.id), base: 0, isKnown: false)
            #expect(outbox.entries.last?.event == .delete("m", id: change.id))
            #expect(outbox.entries.count >= 2)
        }
    }

    @Test("an id that the app sets is not random, and random ids are 26 distinguishable letters and digits")
    func randomIDs() {
        var change = SyncChange.insert("m")
        #expect(change.hasRandomID && change.id.utf8.count == 26)
        #expect(change.id.allSatisfy { "0123456789abcdefghjkmnpqrstvwxyz".contains($0) })
        #expect(SyncChange.insert("m").id != change.id)
        change.id = "1"
        #expect(!change.hasRandomID)
        #expect(SyncEvent.insert("m", ["a": 1]).changes[0].fields["a"] == 1)
    }
}
