import ReelCore

@testable import ReelClient

extension Outbox {
    /// Queues an event of objects that the folded state holds, all of them or none.
    mutating func add(_ event: Event, base: Seq, isKnown: Bool) -> Int64 {
        add(event, base: base) { _ in isKnown }
    }
}
