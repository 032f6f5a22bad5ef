internal import CRdkafka
internal import ReelCore
internal import ReelLog
internal import Synchronization

/// A handle that follows partitions, each for one tail, on a thread of its own.
///
/// Behind trouble with the brokers it reads the last record once more: it must be what it was. Whatever else is not
/// plainly the next record is a doubt: the partition rests, and `TailDoubt` looks at the log with another handle.
final class TailReader: @unchecked Sendable {
    private struct Inbox {
        var begun: [RunningTail] = []
        var settled: [(RunningTail, TailDoubt.Outcome)] = []
        var tails: [Int: RunningTail] = [:]
        var isClosed = false
    }

    /// A partition that is read; belongs to the thread.
    private struct Place {
        let tail: RunningTail
        var next: Seq
        /// The last record that was delivered.
        var last: Witness?
        /// `troubles` of the handle when it was last known that the log is still the same, or began to be looked at.
        var troubles: Int
        /// The last record is read again and has not come yet.
        var isChecking = false
    }

    private let handle: KafkaHandle
    private let topic: KafkaTopic
    private let queue: MessageQueue
    private let doubts: TailDoubts
    private let counters: KafkaCounters
    private let ended: EndedTails
    private let inbox = Mutex(Inbox())
    private let thread = Mutex<LogThread?>(nil)
    private var places: [Int: Place] = [:]
    /// Partitions that were stopped, to be begun again at their last record.
    private var unsure: [Place] = []
    private var topicChanges = 0

    private static let messagesMax = 8192
    /// Where a batch is full.
    private static let bytesMax = 1 << 20

    init(
        topic: String,
        configuration: KafkaConfiguration,
        doubts: TailDoubts,
        counters: KafkaCounters,
        ended: EndedTails,
        log: @escaping KafkaLogLine
    ) throws(LogError) {
        self.doubts = doubts
        self.counters = counters
        self.ended = ended
        handle = try KafkaHandle(.tail, configuration, log: log)
        self.topic = try KafkaTopic(topic, of: handle)
        queue = MessageQueue(of: handle, messagesMax: Self.messagesMax)
        let thread = try LogThread("kafka-tail") { self.run() }
        self.thread.withLock { $0 = thread }
    }

    /// Begins a tail, unless another one reads its partition here.
    func begin(_ tail: RunningTail) -> Bool {
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
        if let thread, !thread.isCurrent { thread.join() }
    }

    // MARK: The thread

    private func run() {
        while takeInbox() {
            lookForChanges()
            deliver(queue.take(waitMs: 1_000))
            for place in unsure { check(place) }
            unsure = []
        }
        for partition in places.keys { queue.stop(topic, partition) }
        // Those that are in doubt, too.
        for tail in inbox.withLock({ $0.tails.values.map(\.self) }) { tail.cancel() }
    }

    /// Does what was asked for; false once the log is closed.
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
            start(tail, last: ended.last(before: tail.next, of: tail.partition))
        }
        for (tail, outcome) in settled { settle(tail, outcome) }
        return !isClosed
    }

    /// Reads on from where the tail is. `isSure`: the log was just seen to be what it was.
    private func start(_ tail: RunningTail, last: Witness?, isSure: Bool = false) {
        let place = Place(tail: tail, next: tail.next, last: last, troubles: handle.troubles)
        guard tail.next >= 0, isSure || last == nil,
            queue.start(topic, tail.partition, from: tail.next)
        else { return doubt(place) }
        places[tail.partition] = place
    }

    private func stop(_ partition: Int) {
        guard places.removeValue(forKey: partition) != nil else { return }
        queue.stop(topic, partition)
    }

    /// Reads the last record again, and on from there.
    private func check(_ place: Place) {
        guard let last = place.last, queue.start(topic, place.tail.partition, from: last.seq) else {
            return doubt(place)
        }
        counters.doubts.add(1, ordering: .relaxed)
        var place = place
        (place.troubles, place.isChecking) = (handle.troubles, true)
        places[place.tail.partition] = place
    }

    private func doubt(_ place: Place) {
        counters.doubts.add(1, ordering: .relaxed)
        doubts.look(
            TailDoubt(tail: place.tail, last: place.last) { outcome in
                self.inbox.withLock { $0.settled.append((place.tail, outcome)) }
                self.queue.wake()
            }
        )
    }

    /// A topic whose partitions were more or less a moment ago may be another one of the same name.
    private func lookForChanges() {
        guard handle.topicChanges != topicChanges else { return }
        topicChanges = handle.topicChanges
        for (partition, place) in places {
            stop(partition)
            doubt(place)
        }
    }

    private func settle(_ tail: RunningTail, _ outcome: TailDoubt.Outcome) {
        guard !tail.hasEnded else { return }
        switch outcome {
        case .failed(let error, let last):
            if let last { ended.keep(last, of: tail.partition) }
            tail.fail(error)
        case .goOn(let batch, let last):
            if !batch.seqs.isEmpty { tail.deliver(batch) }
            start(tail, last: last, isSure: true)
        }
    }

    // MARK: Delivering

    /// Hands messages on, in runs of one partition.
    private func deliver(_ messages: MessageQueue.Messages) {
        var index = messages.startIndex
        while index < messages.endIndex {
            guard let message = messages[index] else { return }
            let partition = Int(message.pointee.partition)
            guard var place = places[partition], isPlain(message, place) else {
                refuse(message)
                index += 1
                continue
            }
            let start = index
            let from = place.next
            var bytes = 0
            while index < messages.endIndex, bytes < Self.bytesMax, let message = messages[index],
                Int(message.pointee.partition) == partition,
                message.pointee.err == RD_KAFKA_RESP_ERR_NO_ERROR, message.pointee.offset == place.next
            {
                bytes += message.pointee.len
                place.next += 1
                index += 1
            }
            let run = KafkaMessages(of: handle, messages[start..<index])
            let batch = RecordBatch(
                partition: partition,
                seqs: from..<place.next,
                entries: run.entries,
                release: { withExtendedLifetime(run) {} }
            )
            place.last = batch.entries.last.map(batch.witness(of:))
            places[partition] = place
            place.tail.deliver(batch)
        }
    }

    /// The next record of a partition that nothing has happened to.
    private func isPlain(_ message: MessageQueue.Message, _ place: Place) -> Bool {
        message.pointee.err == RD_KAFKA_RESP_ERR_NO_ERROR && message.pointee.offset == place.next
            && place.troubles == handle.troubles && !place.isChecking && !place.tail.hasEnded
    }

    private func refuse(_ message: MessageQueue.Message) {
        defer { rd_kafka_message_destroy(message) }
        let partition = Int(message.pointee.partition)
        // Left over from before the partition was stopped.
        guard let place = places[partition] else { return }
        guard !place.tail.hasEnded else { return stop(partition) }
        let isCalm = place.troubles == handle.troubles
        let isExpected =
            switch message.pointee.err {
            case RD_KAFKA_RESP_ERR_NO_ERROR where place.isChecking: place.last.map(message.holds) ?? false
            case RD_KAFKA_RESP_ERR_NO_ERROR: message.pointee.offset == place.next
            case RD_KAFKA_RESP_ERR__PARTITION_EOF: !place.isChecking && message.pointee.offset <= place.next
            default: false
            }
        if isExpected, isCalm {
            places[partition]?.isChecking = false
            return
        }
        stop(partition)
        if isExpected { unsure.append(place) } else { doubt(place) }
    }
}

extension MessageQueue.Message {
    /// Whether it is the record that was known at its offset.
    fileprivate func holds(_ known: Witness) -> Bool {
        let key = UnsafeRawBufferPointer(start: pointee.key, count: pointee.key_len)
        let value = UnsafeRawBufferPointer(start: pointee.payload, count: pointee.len)
        return pointee.offset == known.seq && FNV1a.record(key: key, value: value) == known.hash
    }
}
