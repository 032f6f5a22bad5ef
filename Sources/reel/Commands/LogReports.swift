import ReelKafka
import ReelLog
import ReelNode
import Synchronization

/// Where a log's storage reports what no call of its API returns: in the journal of a node, and on standard error for
/// any other command.
enum LogReports {
    /// Reports long waits for the lock of a log's file.
    static func lockWait(_ console: Console, _ logger: Logger?) -> LockWaitReport {
        let advice =
            "another process holds it; `lslocks` says which one. If that process hangs, stop it: the lock is then free"
        return { wait in
            let waitedMs = wait.waited / .milliseconds(1)
            guard let logger else {
                let state = "\(wait.isOver ? "got" : "waiting for") the lock \(wait.file)"
                return console.note(
                    "reel: \(state) after \(Int64(waitedMs)) ms\(wait.isOver ? "" : ": \(advice)")"
                )
            }
            if wait.isOver {
                logger.info("got the lock of the log", ["file": wait.file, "waited_ms": "\(Int64(waitedMs))"])
            } else {
                logger.warning("waiting for the lock of the log", ["file": wait.file, "detail": advice])
            }
        }
    }

    /// Passes the lines of librdkafka on. `debugs`: its property `debug` is set.
    static func kafka(_ console: Console, _ logger: Logger?, debugs: Bool) -> KafkaLogLine {
        guard let logger else {
            return { level, facility, text in
                // Notices of connections that come and go say nothing that the log's state does not say.
                if level < 4 || debugs { console.note("kafka: \(facility): \(text)") }
            }
        }
        let limiter = Mutex(LineLimiter(lines: 10, windowMs: 10_000))
        return { level, facility, text in
            guard level <= 4 else { return logger.debug("kafka client", ["facility": facility, "detail": text]) }
            guard let unsaid = limiter.withLock({ $0.admit(nowMs: WallClock.nowMs()) }) else { return }
            let fields: KeyValuePairs = ["facility": facility, "detail": text, "lines_left_out": "\(unsaid)"]
            if level < 4 { logger.error("kafka client", fields) } else { logger.warning("kafka client", fields) }
        }
    }
}
