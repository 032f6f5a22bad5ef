import EventLogConformance
import ReelCore
import ReelLog
import Synchronization

/// A log with one damaged record: a read that begins there fails, and later records can be read.
final class DamagedLog: ForwardingLog {
    let log: any EventLog
    private let state = Mutex((damaged: Seq?.none, met: 0))

    init(_ log: MemoryLog) {
        self.log = log
    }

    /// The seq of the damaged record, or nil.
    var damaged: Seq? {
        get { state.withLock { $0.damaged } }
        set { state.withLock { $0.damaged = newValue } }
    }

    /// The number of reads and tails that began at the damaged record.
    var met: Int { state.withLock { $0.met } }

    private func begin(at seq: Seq) throws(LogError) {
        let isDamaged = state.withLock { state in
            guard state.damaged == seq else { return false }
            state.met += 1
            return true
        }
        if isDamaged { throw LogError(.logUnavailable, "seq \(seq) is damaged") }
    }

    func tail(_ partition: Int, from: Seq, to sink: any LogSink) -> any LogTail {
        do throws(LogError) {
            try begin(at: from)
        } catch {
            let tail = TailHandle(partition: partition, from: from, sink: sink)
            tail.fail(error)
            return tail
        }
        return log.tail(partition, from: from, to: sink)
    }

    func read(_ partition: Int, from: Seq, to: Seq, bytes: Int) throws(LogError) -> RecordBatch {
        try begin(at: from)
        return try log.read(partition, from: from, to: to, bytes: bytes)
    }

    func close() { log.close() }
}
