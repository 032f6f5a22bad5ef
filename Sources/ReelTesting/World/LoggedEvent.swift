public import ReelClient
public import ReelCore

/// An event in the log of a `TestWorld`.
public struct LoggedEvent: Sendable {
    /// The position of the event in the log of all streams.
    public let seq: Seq
    /// The name of the device that has sent the event.
    public let device: String
    /// The user of that device; nil: it has none.
    public let user: String?
    /// The result of the event for every reader. A device that gets no answer sends an event again: the copies that the
    /// log then has are `duplicate`.
    public let outcome: Outcome
    /// The event.
    public let event: SyncEvent
}

extension LoggedEvent: CustomStringConvertible {
    /// The seq, the device, the outcome and the JSON of the event.
    public var description: String { "\(seq) \(device) \(outcome) \(event)" }
}

extension LoggedEvent {
    init?(_ record: TestNode.Record, seq: Seq) {
        var base = Seq.none
        guard let event = record.value.withUnsafeBytes({ SyncEvent(encoded: $0, base: &base) }) else { return nil }
        let members = record.value.withUnsafeBytes { JSONValue(parsing: $0) }?.object
        self.init(
            seq: seq,
            device: record.device,
            user: members?["by"]?.string,
            outcome: record.outcome,
            event: event
        )
    }
}
