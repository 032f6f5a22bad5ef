import EventLogConformance
import Foundation
import ReelCore
import ReelLog

/// A log whose answers are held back while a test wants it so.
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

    /// Holds back what is asked for from now on.
    func hold() { change { isHeld = true } }

    /// Answers.
    func release() { change { isHeld = false } }

    /// How many reads wait for their answer.
    var waitingReads: Int { change { held.reads } }

    /// How many wait to hear where it ends; the gateway itself asks about once a second.
    var waitingForEnds: Int { change { held.ends } }

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
