import Foundation
import ReelCore
import ReelLog

/// A log whose answers are held back while a test wants it so.
final class HeldLog: EventLog, @unchecked Sendable {
    private let log: MemoryLog
    private let condition = NSCondition()
    private var isHeld = false
    private var held = 0
    private var begun = 0
    private var ends = 0
    private var ranges: [Range<Seq>] = []

    init(_ log: MemoryLog) {
        self.log = log
    }

    /// Holds back what is asked for from now on.
    func hold() { change { isHeld = true } }

    /// Answers.
    func release() { change { isHeld = false } }

    /// How many questions wait for their answer.
    var waiting: Int { change { held } }

    /// How many reads were asked for.
    var reads: Int { change { begun } }

    /// How often it was asked where it ends.
    var boundsAsked: Int { change { ends } }

    /// The seqs that reads have brought, read by read.
    var rangesRead: [Range<Seq>] { change { ranges } }

    private func change<R>(_ body: () -> R) -> R {
        condition.lock()
        defer {
            condition.broadcast()
            condition.unlock()
        }
        return body()
    }

    private func pass(isRead: Bool) {
        condition.lock()
        if isRead { begun += 1 } else { ends += 1 }
        held += 1
        while isHeld { condition.wait() }
        held -= 1
        condition.unlock()
    }

    var epoch: Epoch { log.epoch }
    var partitions: Int { log.partitions }

    func tail(_ partition: Int, from: Seq, to sink: any LogSink) -> any LogTail {
        log.tail(partition, from: from, to: sink)
    }

    func read(_ partition: Int, from: Seq, to: Seq, bytes: Int) throws(LogError) -> RecordBatch {
        pass(isRead: true)
        let batch = try log.read(partition, from: from, to: to, bytes: bytes)
        change { ranges.append(batch.seqs) }
        return batch
    }

    func bounds(_ partition: Int) throws(LogError) -> LogBounds {
        pass(isRead: false)
        return try log.bounds(partition)
    }

    func append(_ records: [LogAppend], to partition: Int, done: @escaping @Sendable (Result<[Seq], LogError>) -> Void)
    {
        log.append(records, to: partition, done: done)
    }

    func announce(_ node: NodeAnnouncement) throws(LogError) { try log.announce(node) }
    func nodes() throws(LogError) -> [NodeAnnouncement] { try log.nodes() }
    func close() { log.close() }
}
