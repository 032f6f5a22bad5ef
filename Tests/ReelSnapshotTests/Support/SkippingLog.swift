import EventLogConformance
import ReelCore
import ReelLog
import Synchronization

/// A log whose first tail omits the records before a seq, as a faulty client of a broker might.
final class SkippingLog: ForwardingLog {
    let log: any EventLog
    private let first: Mutex<Seq?>
    private let asked = Mutex(0)

    /// Creates the log. Without a seq, the first tail omits nothing.
    init(_ log: any EventLog, firstTailFrom seq: Seq? = nil) {
        self.log = log
        first = Mutex(seq)
    }

    /// The number of requests for the end of a partition.
    var boundsAsked: Int { asked.withLock { $0 } }

    func tail(_ partition: Int, from: Seq, to sink: any LogSink) -> any LogTail {
        log.tail(partition, from: first.withLock { $0.take() } ?? from, to: sink)
    }

    func bounds(_ partition: Int) throws(LogError) -> LogBounds {
        asked.withLock { $0 += 1 }
        return try log.bounds(partition)
    }

    func close() { log.close() }
}
