public import ReelCore

/// What became of a published event.
public enum Fate: Sendable, Equatable {
    /// Consumed at this seq, and its effect is in the objects.
    case applied(Seq)
    /// Consumed at this seq without effect, for the reason that everybody reads from the stream.
    case rejected(ErrorCode, Seq)
    /// Consumed, known from a snapshot: whether it had an effect shows in the objects. The seq is known where no later
    /// event of this device is in the same snapshot.
    case consumed(Seq?)
    /// Never sent: a later event of the queue took its place, both cancelled out, or the account was erased.
    case reduced
    /// Not sent by this device, or not taken by a gateway, for good; nothing of it is in the stream.
    case refused(ReelError)
    /// Handed to a connection, and never sent again: it cannot be told whether the stream has it or will have it, and
    /// to send it once more could make it happen twice.
    case unknown(ReelError)

    /// The stream's fold has met the event, and its site is one of the stream's.
    var isConsumed: Bool {
        switch self {
        case .applied, .rejected, .consumed: true
        case .refused, .reduced, .unknown: false
        }
    }

    /// True if the stream has the event, and did not reject it as far as is known.
    var isApplied: Bool {
        switch self {
        case .applied, .consumed: true
        case .rejected, .refused, .reduced, .unknown: false
        }
    }

    /// The event says something that nobody will ever see.
    var isLoss: Bool {
        switch self {
        case .rejected, .refused, .unknown: true
        case .applied, .consumed, .reduced: false
        }
    }
}
