import EventLogConformance
import Foundation
import ReelCore
import ReelLog

/// A log that holds back its answers while a test wants it to.
final class HeldLog: ForwardingLog, @unchecked Sendable {
    let log: any EventLog
    private let condition = NSCondition()
    private var isHeld = false
    private var held = (reads: 0, ends: 0)
    private var begun = 0
    private var ends = 0
    private var ranges: [Range<Seq>] = []

    init(_ log: MemoryLog) {
        self.log = log
    }

    /// Holds back the answers to all later requests.
    func hold() { change { isHeld = true } }

    /// Releases the answers that are held back.
    func release() { change { isHeld = false } }

    /// The number of reads that wait for their answer.
    var waitingReads: Int { change { held.reads } }

    /// The number of requests for the log's end that wait. The gateway itself sends one about once a second.
    var waitingForEnds: Int { change { held.ends } }

    /// The number of reads that have begun.
    var reads: Int { change { begun } }

    /// The number of requests for the log's end.
    var boundsAsked: Int { change { ends } }

    /// The seqs that each read has returned, in order.
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
        let one = isRead ? (reads: 1, ends: 0) : (reads: 0, ends: 1)
        held = (held.reads + one.reads, held.ends + one.ends)
        while isHeld { condition.wait() }
        held = (held.reads - one.reads, held.ends - one.ends)
        condition.unlock()
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

    func close() { log.close() }
}
