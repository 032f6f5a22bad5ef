import ReelCore
import ReelNode

/// A client's subscription to one stream, with its position there.
final class Subscription<Client: Subscriber> {
    let client: Client
    private(set) var cursor: StreamCursor
    /// The index of the subscription among the live ones of its stream.
    var index: Int32 = 0
    var readState = ReadState.idle
    /// True if the subscription gets the tail's batches. Until then it catches up.
    var isLive = false
    /// True once the subscription has ended, or a newer one has replaced it.
    private(set) var isOver = false
    /// True if the head has to be proven although there is no event to send. Only for subscriptions with outcomes.
    var owesProof = true

    init(client: Client, _ cursor: StreamCursor) {
        self.client = client
        self.cursor = cursor
    }

    var stream: StreamName { cursor.stream }
    var partition: Int { cursor.partition }
    /// The last seq that was proven to the client.
    var proven: Seq { cursor.proven }
    /// The next seq to look at.
    var next: Seq { cursor.next }
    /// The filter for events; nil: all events.
    var filter: EventFilter? { cursor.filter }
    /// True if each event is sent with its outcome. Such a subscription never becomes live: it is a `StreamWaiter`.
    var hasOutcomes: Bool { cursor.hasOutcomes }

    /// Ends the subscription.
    func finish() {
        isOver = true
        // The reader may stay in a queue for a while, and its filter can be large.
        cursor = StreamCursor(stream, in: partition, after: proven)
    }

    /// Advances by a piece of old events. Returns its use.
    func take(_ piece: EventRange) -> StreamCursor.Use { cursor.take(piece) }

    /// Records that all events up to `seq` were sent.
    func sent(to seq: Seq) { cursor.prove(to: seq) }
}

/// A client that subscribes.
protocol Subscriber: AnyObject {
    /// A number that is unique on its loop. It is not the object's address, so that a simulated run is the same each
    /// time.
    var number: Int { get }
    /// The bytes of the filters of all its subscriptions. `Subscriptions` keeps the sum.
    var filterBytes: Int { get set }

    /// Called when a subscription of the client has ended, unless a newer one to the same stream replaces it.
    func subscriptionEnded()
}
