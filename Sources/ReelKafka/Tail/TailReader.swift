internal import CRdkafka
internal import ReelCore
internal import ReelLog
internal import Synchronization

/// A handle that follows partitions, each for one tail, on its own thread.
///
/// After an error of a connection it reads the last record again, which must be the same. Anything else that is not
/// clearly the next record stops the partition, and `TailRevalidation` checks the log through another handle.
final class TailReader: @unchecked Sendable {
    private struct Inbox {
        var begun: [TailHandle] = []
        var settled: [(Reading, TailRevalidation.Outcome)] = []
        var tails: [Int: TailHandle] = [:]
        var isClosed = false
    }

    /// A partition that is read. Used only on the thread.
    private struct Reading {
        let tail: TailHandle
        var place: TailPlace
        /// The handle's count of topic changes when a revalidation began.
        var topicChanges = 0
    }

    private let handle: KafkaHandle
    private let topic: KafkaTopic
    private let queue: MessageQueue
    private let delivery: TailDelivery
    private let doubts: TailRevalidations
    private let counters: KafkaCounters
    private let ended: LastReadRecords
    private let inbox = Mutex(Inbox())
    private let thread = Mutex<LogThread?>(nil)
    private var readings: [Int: Reading] = [:]
    /// Stopped partitions that must be started again at their last record.
    private var unchecked: [Reading] = []
    private var topicChanges = 0

    private static let messagesMax = 512
    /// The number of bytes at which a batch is full.
    private static let bytesMax = 1 << 20

    init(
        topic: String,
        configuration: KafkaConfiguration,
        doubts: TailRevalidations,
        counters: KafkaCounters,
        ended: LastReadRecords,
        log: @escaping KafkaLogLine
    ) throws(LogError) {
        self.doubts = doubts
        self.counters = counters
        self.ended = ended
        handle = try KafkaHandle(.tail, configuration, log: log)
        self.topic = try KafkaTopic(topic, of: handle)
        queue = MessageQueue(of: handle, messagesMax: Self.messagesMax)
        delivery = try TailDelivery()
        do throws(LogError) {
            let thread = try LogThread("kafka-tail") { self.run() }
            self.thread.withLock { $0 = thread }
        } catch {
            delivery.close()
            throw error
        }
    }

    /// Begins a tail. Returns false if the reader is closed, or already reads the partition for another tail.
    func begin(_ tail: TailHandle) -> Bool {
        let isTaken = inbox.withLock { inbox in
            guard !inbox.isClosed, inbox.tails[tail.partition]?.hasEnded ?? true else { return false }
            inbox.tails[tail.partition] = tail
            inbox.begun.append(tail)
            return true
        }
        if isTaken { queue.wake() }
        return isTaken
    }

    /// Ends all tails and the thread.
    func close() {
        inbox.withLock { $0.isClosed = true }
        queue.wake()
        let thread = thread.withLock { $0.take() }
        if let thread, !thread.isCurrent, !delivery.isCurrent { thread.join() }
    }

    // MARK: The thread

    private func run() {
        while takeInbox() {
            let messages = queue.take(waitMs: 1_000)
            // Checked first: the messages may be of a topic that was created again while none arrived.
            revalidateChangedTopics()
            deliver(messages)
            for reading in unchecked { check(reading) }
            unchecked = []
        }
        for partition in readings.keys { queue.stop(topic, partition) }
        // Also ends tails that are being revalidated.
        for tail in inbox.withLock({ $0.tails.values.map(\.self) }) { tail.cancel() }
        delivery.close()
    }

    /// Handles the requests of other threads. Returns false once the log is closed.
    private func takeInbox() -> Bool {
        let (begun, settled, isClosed) = inbox.withLock { inbox in
            defer {
                inbox.begun = []
                inbox.settled = []
            }
            return (inbox.begun, inbox.settled, inbox.isClosed)
        }
        for tail in begun {
            stop(tail.partition)
            let last = ended.last(before: tail.next, of: tail.partition)
            let place = TailPlace(next: tail.next, last: last, troubles: handle.troubles)
            let reading = Reading(tail: tail, place: place)
            if last == nil, tail.next >= 0 { start(reading) } else { revalidate(reading) }
        }
        for (reading, outcome) in settled { settle(reading, outcome) }
        return !isClosed
    }

    /// Reads from the tail's position.
    private func start(_ reading: Reading) {
        guard queue.start(topic, reading.tail.partition, from: reading.place.next) else { return revalidate(reading) }
        readings[reading.tail.partition] = reading
    }

    private func stop(_ partition: Int) {
        guard readings.removeValue(forKey: partition) != nil else { return }
        queue.stop(topic, partition)
    }

    /// Reads the last record again, and continues from there.
    private func check(_ reading: Reading) {
        var reading = reading
        reading.place.recheck(troubles: handle.troubles)
        guard let last = reading.place.last, queue.start(topic, reading.tail.partition, from: last.seq) else {
            return revalidate(reading)
        }
        counters.doubts.add(1, ordering: .relaxed)
        readings[reading.tail.partition] = reading
    }

    private func revalidate(_ reading: Reading) {
        // Another thread continues from the tail's position, so its batches must be delivered first.
        delivery.finish()
        counters.doubts.add(1, ordering: .relaxed)
        var reading = reading
        reading.place.doubt(troubles: handle.troubles)
        reading.topicChanges = handle.topicChanges
        doubts.look(
            TailRevalidation(tail: reading.tail, last: reading.place.last) { [reading] outcome in
                self.inbox.withLock { $0.settled.append((reading, outcome)) }
                self.queue.wake()
            }
        )
    }

    /// Revalidates all partitions if a topic has changed its number of partitions: it may be another topic of the same
    /// name.
    private func revalidateChangedTopics() {
        guard handle.topicChanges != topicChanges else { return }
        topicChanges = handle.topicChanges
        for (partition, reading) in readings {
            stop(partition)
            revalidate(reading)
        }
    }

    private func settle(_ reading: Reading, _ outcome: TailRevalidation.Outcome) {
        // The delivery thread may be calling a sink of another tail, and only one sink may be called at a time.
        delivery.finish()
        let tail = reading.tail
        guard !tail.hasEnded else { return }
        switch outcome {
        case .failed(let error, let last):
            if let last { ended.keep(last, of: tail.partition) }
            tail.fail(error)
        case .proceed(let batch, let last):
            if !batch.seqs.isEmpty { tail.deliver(batch) }
            var reading = reading
            reading.place.settle(next: tail.next, last: last)
            if reading.topicChanges == handle.topicChanges { start(reading) } else { revalidate(reading) }
        }
    }

    // MARK: Delivering

    /// Delivers messages in runs of one partition.
    private func deliver(_ messages: MessageQueue.Messages) {
        let isMoreThere = messages.count == Self.messagesMax
        var rest = messages
        while let message = rest.first ?? nil {
            let count = take(message) ? deliverRun(of: rest, isMoreThere: isMoreThere) : 0
            if count == 0 { rd_kafka_message_destroy(message) }
            rest = rest.dropFirst(max(1, count))
        }
    }

    /// Returns true if the message is to be delivered. Otherwise does what the message requires.
    private func take(_ message: MessageQueue.Message) -> Bool {
        let partition = Int(message.pointee.partition)
        // An old message from before the partition was stopped.
        guard var reading = readings[partition] else { return false }
        guard !reading.tail.hasEnded else {
            stop(partition)
            return false
        }
        switch reading.place.take(message.arrival, troubles: handle.troubles, hash: { message.hash }) {
        case .deliver: return true
        case .proceed: readings[partition] = reading
        case .check:
            stop(partition)
            unchecked.append(reading)
        case .doubt:
            stop(partition)
            revalidate(reading)
        }
        return false
    }

    /// Delivers the first message with those that directly follow it, as one batch. Returns their number.
    private func deliverRun(of messages: MessageQueue.Messages, isMoreThere: Bool) -> Int {
        guard let partition = messages.first??.pointee.partition, var reading = readings[Int(partition)] else {
            return 0
        }
        let from = reading.place.next
        var (next, bytes) = (from, 0)
        for case let message? in messages {
            guard message.pointee.partition == partition, message.pointee.err == RD_KAFKA_RESP_ERR_NO_ERROR,
                message.pointee.offset == next, bytes < Self.bytesMax
            else { break }
            bytes += message.pointee.len
            next += 1
        }
        let batch = TailRecords.batch(Int(partition), from: from, messages.prefix(Int(next - from)))
        reading.place.next = next
        reading.place.last = batch.entries.last.map(batch.witness(of:))
        readings[Int(partition)] = reading
        delivery.deliver(batch, to: reading.tail, isMoreThere: isMoreThere)
        return batch.entries.count
    }
}

extension MessageQueue.Message {
    fileprivate var hash: UInt64 {
        FNV1a.record(key: key, value: value)
    }
}
