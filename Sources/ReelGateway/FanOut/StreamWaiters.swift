import ReelCore
import ReelNode

/// A reader that waits for new events of a stream: an HTTP request, or a subscription with outcomes. On its loop only.
protocol StreamWaiter: AnyObject {
    var stream: StreamName { get }
    var partition: Int { get }

    /// Called when the stream has more events.
    func moved()
    /// Called when the partition is not served any longer.
    func failed(_ error: ReelError)
    /// Called about once a second.
    func tick(nowMs: Int64)
    /// Called when the node is about to end: the client has to go elsewhere after `afterMs` milliseconds.
    func askToLeave(afterMs: Int64)
}

/// The readers that wait for new events on one loop. Live subscriptions get events pushed. These readers are only told
/// that there are more events, and read them at their own pace from their own position. So a slow client costs no
/// memory and misses nothing.
final class StreamWaiters {
    private var streams: [StreamName: [ObjectIdentifier: any StreamWaiter]] = [:]
    /// The message that was made last. Clients with the same position get the same bytes.
    private var latest: (key: MessageKey, bytes: [UInt8])?

    private struct MessageKey: Equatable {
        var stream: StreamName
        var filter: EventFilter?
        var hasOutcomes: Bool
        var seqs: [Seq]
    }

    /// Adds a waiter. Returns false if it was there already.
    func add(_ waiter: any StreamWaiter) -> Bool {
        streams[waiter.stream, default: [:]].updateValue(waiter, forKey: ObjectIdentifier(waiter)) == nil
    }

    /// Removes a waiter. Returns false if it was not there.
    func remove(_ waiter: any StreamWaiter) -> Bool {
        guard streams[waiter.stream]?.removeValue(forKey: ObjectIdentifier(waiter)) != nil else { return false }
        if streams[waiter.stream]?.isEmpty == true { streams[waiter.stream] = nil }
        return true
    }

    func holds(_ waiter: any StreamWaiter) -> Bool {
        streams[waiter.stream]?[ObjectIdentifier(waiter)] != nil
    }

    /// Returns true if there are waiters for a stream.
    func awaits(_ stream: StreamName) -> Bool { streams[stream] != nil }

    /// A copy of all waiters, so that they may be added and removed while they are called.
    var all: [any StreamWaiter] { streams.values.flatMap(\.values) }

    /// Returns the waiters for a partition.
    func all(in partition: Int) -> [any StreamWaiter] { all.filter { $0.partition == partition } }

    /// Returns the waiters for the streams of a batch. Barriers belong to every stream of their partition.
    func all(awaiting batch: TailBatch) -> [any StreamWaiter] {
        if streams.isEmpty { return [] }
        if batch.hasBarriers { return all(in: batch.partition) }
        return batch.streams.flatMap { streams[$0].map { Array($0.values) } ?? [] }
    }

    /// Returns the message of an answer. It is made once for all clients with the same position, filter and wish for
    /// outcomes.
    func message(
        _ stream: StreamName,
        _ filter: EventFilter?,
        hasOutcomes: Bool,
        _ answer: EventRangeBody,
        _ make: () -> [UInt8]
    ) -> [UInt8] {
        let key = MessageKey(
            stream: stream,
            filter: filter,
            hasOutcomes: hasOutcomes,
            seqs: [answer.from, answer.to, answer.head]
        )
        if let latest, latest.key == key { return latest.bytes }
        let bytes = make()
        latest = (key, bytes)
        return bytes
    }
}
