public import ReelCore

/// An own event that waits in the queue of a stream, as it was when the list was made.
public struct QueuedEvent: Sendable, Hashable, Codable, Identifiable {
    /// The progress of an event in the queue.
    public enum State: String, Sendable, Codable {
        /// The event has no op. It can be withdrawn, and later writes may be merged into it.
        case waiting
        /// A node got the event, or may have got it. The event keeps its site and op.
        case sent
        /// A node has reported that the event is durable. The device has not read it back from the stream yet.
        case acked
    }

    /// The reason why an event is still in the queue.
    public enum Reason: Sendable, Hashable, Codable {
        /// A problem of the client or of the stream; see `SyncStatus.problems`. Without a connection the code is
        /// `offline`.
        case problem(ErrorCode, message: String)
        /// The device first reads the stream up to its head.
        case reading
        /// Earlier events are sent first, or the event is about to be sent.
        case turn
        /// The event is sent again after a pause of this many milliseconds.
        case pause(ms: Int64)
        /// The event waits until the stream has rejected an earlier event of this device.
        case rejection
        /// The node has not answered yet.
        case answer
        /// The device has not read the event back from the stream yet.
        case confirmation
    }

    /// The number of the event in its stream, as in `queueLines`. It does not change while the event waits.
    public let id: Int64
    /// The name of the stream.
    public let stream: String
    /// The event as it waits: the result of all writes that were merged into it.
    public let event: SyncEvent
    /// The time at which the first of the merged writes was published, in milliseconds since 1970 by the device's wall
    /// clock. For an event of an earlier run it is the time at which the stream was opened: it is at least that old.
    public let sinceMs: Int64
    /// The progress of the event.
    public let state: State
    /// The reason why the event is still in the queue.
    public let reason: Reason
}

extension QueuedEvent.Reason: CustomStringConvertible {
    /// The reason in plain words. For a problem it is the message with the code, as of a `ReelError`.
    public var description: String {
        switch self {
        case .problem(let code, let message): "\(message) (\(code.rawValue))"
        case .reading: "the device first reads the stream up to its head"
        case .turn: "earlier events are sent first, or the event is about to be sent"
        case .pause(let ms): "the event is sent again in \(ms) ms"
        case .rejection: "the stream has not rejected an earlier event of this device yet"
        case .answer: "the node has not answered yet"
        case .confirmation: "the device has not read the event back from the stream yet"
        }
    }
}

/// The error of a flush that did not end in time.
public struct FlushTimeout: Error, Sendable, Hashable, CustomStringConvertible {
    /// The events that still wait, of those that waited when the flush began. They stay in the queue.
    public let waiting: [QueuedEvent]

    /// The number of events, and the first of them with its reason.
    public var description: String {
        guard let first = waiting.first else { return "found no event that waits" }
        return "\(waiting.count) own events wait after the deadline, the first in the stream \(first.stream): "
            + "\(first.state), \(first.reason)"
    }
}

/// The error of a withdrawal that is not possible.
public enum WithdrawalRefused: Error, Sendable, Hashable, CustomStringConvertible {
    /// No event with this id waits: it is settled, was merged into another event, or was never queued.
    case notQueued(QueuedEvent.ID)
    /// The event has its op, so a node may have it.
    case sent(QueuedEvent.ID)

    /// The id and the reason.
    public var description: String {
        switch self {
        case .notQueued(let id): "found no event \(id) in the queue: it is settled, or was never queued"
        case .sent(let id): "found the event \(id) with an op: a node may have it, so it cannot be withdrawn"
        }
    }
}
