public import ReelCore

/// The outcome of a published event.
public enum PublishOutcome: Sendable, Hashable, Codable {
    /// The log has consumed the event at this seq, and its effect is in the objects.
    case applied(Seq)
    /// The log has consumed the event at this seq without effect. Every reader of the stream finds the same reason.
    case rejected(ErrorCode, Seq)
    /// The event was consumed, as a snapshot or delta shows, and no node has told its outcome. The objects show if it
    /// had an effect. The seq is known unless a later event of this device is in the same state.
    case consumed(Seq?)
    /// The event was never sent. A later event of the queue has replaced it, both have cancelled each other, the fields
    /// had its values already, or the app has withdrawn or discarded it.
    case superseded
    /// The event was not sent by this device, or not accepted by a gateway, for good. The stream has nothing of it.
    case failed(ReelError)
    /// The event was handed to a connection and is never sent again. The stream may have it, or get it later, or not;
    /// sending it once more could apply it twice.
    case unknown(ReelError)

    /// True if the stream's fold has consumed the event, and its site is one of the stream's.
    var isConsumed: Bool {
        switch self {
        case .applied, .rejected, .consumed: true
        case .failed, .superseded, .unknown: false
        }
    }

    /// True if the stream has the event, and is not known to have rejected it.
    var isApplied: Bool {
        switch self {
        case .applied, .consumed: true
        case .rejected, .failed, .superseded, .unknown: false
        }
    }

    /// True if the content of the event is lost: no device will ever show it.
    var isLoss: Bool {
        switch self {
        case .rejected, .failed, .unknown: true
        case .applied, .consumed, .superseded: false
        }
    }
}
