internal import CRdkafka
internal import ReelCore
internal import ReelLog
internal import Synchronization

/// A handle that follows partitions, each for one tail, on a thread of its own. Whatever is not plainly the next record
/// is a doubt: the partition rests, and `TailDoubt` looks at the log with another handle.
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
        /// `troubles` of the handle when it was last known that the log is still the same.
        var troubles: Int
    }

    private let handle: KafkaHandle
    private let topic: KafkaTopic
    private let queue: OpaquePointer
    private let reading: PartitionReading
    private let counters: KafkaCounters
    private let ended: EndedTails
    private let inbox = Mutex(Inbox())
    private let thread = Mutex<LogThread?>(nil)
    private let buffer: UnsafeMutableBufferPointer<UnsafeMutablePointer<rd_kafka_message_t>?>
    private var places: [Int: Place] = [:]
    private var topicChanges = 0

    private static let messagesMax = 8192
    /// Where a batch is full.
    private static let bytesMax = 1 << 20

    init(
        topic: String,
        configuration: KafkaConfiguration,
        reading: PartitionReading,
        counters: KafkaCounters,
        ended: EndedTails,
        log: @escaping KafkaLogLine
    ) throws(LogError) {
        self.reading = reading
        self.counters = counters
        self.ended = ended
        handle = try KafkaHandle(.tail, configuration, log: log)
        self.topic = try KafkaTopic(topic, of: handle)
        queue = rd_kafka_queue_new(handle.pointer)
        let main = rd_kafka_queue_get_main(handle.pointer)
        rd_kafka_queue_forward(main, queue)
        rd_kafka_queue_destroy(main)
        buffer = .allocate(capacity: Self.messagesMax)
        buffer.initialize(repeating: nil)
        let thread = try LogThread("kafka-tail") { self.run() }
        self.thread.withLock { $0 = thread }
    }

    deinit {
        rd_kafka_queue_destroy(queue)
        buffer.deallocate()
    }

    /// Begins a tail, unless another one reads its partition here.
    func begin(_ tail: RunningTail) -> Bool {
        let isTaken = inbox.withLock { inbox in
            guard !inbox.isClosed, inbox.tails[tail.partition]?.hasEnded ?? true else { return false }
            inbox.tails[tail.partition] = tail
            inbox.begun.append(tail)
            return true
        }
        if isTaken { wake() }
        return isTaken
    }

    /// Ends all tails and the thread.
    func close() {
        inbox.withLock { $0.isClosed = true }
        wake()
        let thread = thread.withLock { $0.take() }
        if let thread, !thread.isCurrent { thread.join() }
    }

    private func wake() {
        rd_kafka_queue_yield(queue)
    }

    // MARK: The thread

    private func run() {
        while takeInbox() {
            lookForChanges()
            guard let first = rd_kafka_consume_queue(queue, 1_000) else { continue }
            buffer[0] = first
            let more = rd_kafka_consume_batch_queue(queue, 0, buffer.baseAddress! + 1, buffer.count - 1)
            deliver(1 + max(0, more))
        }
        for partition in places.keys { rd_kafka_consume_stop(topic.pointer, Int32(partition)) }
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
            rd_kafka_consume_start_queue(topic.pointer, Int32(tail.partition), tail.next, queue) == 0
        else { return doubt(place) }
        places[tail.partition] = place
    }

    private func stop(_ partition: Int) {
        guard places.removeValue(forKey: partition) != nil else { return }
        rd_kafka_consume_stop(topic.pointer, Int32(partition))
    }

    private func doubt(_ place: Place) {
        counters.doubts.add(1, ordering: .relaxed)
        let doubt = TailDoubt(tail: place.tail, last: place.last, reading: reading) { outcome in
            self.inbox.withLock { $0.settled.append((place.tail, outcome)) }
            self.wake()
        }
        doubt.look()
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

    /// Hands on what lies in the buffer, in runs of one partition.
    private func deliver(_ count: Int) {
        var index = 0
        while index < count {
            guard let message = buffer[index] else { return }
            let partition = Int(message.pointee.partition)
            guard var place = places[partition], isPlain(message, place) else {
                refuse(message)
                index += 1
                continue
            }
            let start = index
            let from = place.next
            var bytes = 0
            while index < count, bytes < Self.bytesMax, let message = buffer[index],
                Int(message.pointee.partition) == partition,
                message.pointee.err == RD_KAFKA_RESP_ERR_NO_ERROR, message.pointee.offset == place.next
            {
                bytes += message.pointee.len
                place.next += 1
                index += 1
            }
            let messages = KafkaMessages(of: handle, buffer[start..<index])
            let batch = RecordBatch(
                partition: partition,
                seqs: from..<place.next,
                entries: messages.entries,
                release: { withExtendedLifetime(messages) {} }
            )
            place.last = batch.entries.last.map(batch.witness(of:))
            places[partition] = place
            place.tail.deliver(batch)
        }
    }

    /// The next record of a partition that nothing has happened to.
    private func isPlain(_ message: UnsafeMutablePointer<rd_kafka_message_t>, _ place: Place) -> Bool {
        message.pointee.err == RD_KAFKA_RESP_ERR_NO_ERROR && message.pointee.offset == place.next
            && place.troubles == handle.troubles && !place.tail.hasEnded
    }

    private func refuse(_ message: UnsafeMutablePointer<rd_kafka_message_t>) {
        defer { rd_kafka_message_destroy(message) }
        let partition = Int(message.pointee.partition)
        // Left over from before the partition was stopped.
        guard let place = places[partition] else { return }
        guard !place.tail.hasEnded else { return stop(partition) }
        let isEnd = message.pointee.err == RD_KAFKA_RESP_ERR__PARTITION_EOF
        if isEnd, message.pointee.offset <= place.next, place.troubles == handle.troubles { return }
        stop(partition)
        doubt(place)
    }
}
