import ReelBase
import ReelKafka
import ReelLog
import ReelNode
import Synchronization

/// Callbacks for events of a log's storage that no call of its API returns. A node writes them as log lines; any other
/// command writes them to standard error.
enum LogReports {
    /// Returns the callback for long waits for the lock of a log's file. `logger`: nil for a command that is no node.
    static func lockWait(_ console: Console, _ logger: Logger?) -> LockWaitReport {
        let advice =
            "another process holds it; `lslocks` shows which one. If that process hangs, stop it: this frees the lock"
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

    /// Returns the callback for lines of librdkafka.
    ///
    /// - Parameters:
    ///   - console: the output of a command without a logger.
    ///   - logger: the logger of a node; at most 10 warnings and errors pass in 10 seconds.
    ///   - debugs: true if librdkafka's property `debug` is set; then a command prints all lines.
    static func kafka(_ console: Console, _ logger: Logger?, debugs: Bool) -> KafkaLogLine {
        guard let logger else {
            return { level, facility, text in
                // Notices of opened and closed connections add nothing to the state of the log.
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
