import ReelCore
import ReelNode

/// An HTTP request that waits for what comes in a stream, on its loop.
protocol StreamWaiter: AnyObject {
    var stream: StreamName { get }
    var partition: Int { get }

    /// There is more of the stream.
    func moved()
    /// The partition is not served any longer.
    func failed(_ error: ReelError)
    /// About once a second.
    func tick(nowMs: Int64)
    /// The node ends: go elsewhere after so long.
    func askToLeave(afterMs: Int64)
}

/// Who on this loop waits by HTTP for what comes. Unlike a socket, which is pushed to, each of them is only told that
/// there is more, and reads it at its own pace from where it stands: one that is slow costs no memory and misses
/// nothing.
struct StreamWaiters {
    private var streams: [StreamName: [ObjectIdentifier: any StreamWaiter]] = [:]
    /// The message made last: those who stand at the same seq get the same bytes.
    private var latest: (key: MessageKey, bytes: [UInt8])?

    private struct MessageKey: Equatable {
        var stream: StreamName
        var filter: EventFilter?
        var hasOutcomes: Bool
        var seqs: [Seq]
    }

    /// False if it was there already.
    mutating func add(_ follower: any StreamWaiter) -> Bool {
        streams[follower.stream, default: [:]].updateValue(follower, forKey: ObjectIdentifier(follower)) == nil
    }

    /// False if it was not there.
    mutating func remove(_ follower: any StreamWaiter) -> Bool {
        guard streams[follower.stream]?.removeValue(forKey: ObjectIdentifier(follower)) != nil else { return false }
        if streams[follower.stream]?.isEmpty == true { streams[follower.stream] = nil }
        return true
    }

    func holds(_ follower: any StreamWaiter) -> Bool {
        streams[follower.stream]?[ObjectIdentifier(follower)] != nil
    }

    /// All of them; they may come and go while they are told something.
    var all: [any StreamWaiter] { streams.values.flatMap(\.values) }

    /// Those who wait for a partition.
    func all(in partition: Int) -> [any StreamWaiter] { all.filter { $0.partition == partition } }

    /// Those who wait for what the batch brings: barriers come in every stream of their partition.
    func all(awaiting batch: TailBatch) -> [any StreamWaiter] {
        if streams.isEmpty { return [] }
        if batch.hasBarriers { return all(in: batch.partition) }
        return batch.streams.flatMap { streams[$0].map { Array($0.values) } ?? [] }
    }

    /// The message of an answer, made once for all that stand at the same seq and want the same.
    mutating func message(
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
