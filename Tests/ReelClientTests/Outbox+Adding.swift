import ReelCore

@testable import ReelClient

extension Outbox {
    /// Queues an event. If `isKnown` is true, the folded state has all its objects, otherwise none of them.
    mutating func add(_ event: SyncEvent, base: Seq, isKnown: Bool) -> Int64 {
        add(event, base: base) { _ in isKnown }
    }
}
