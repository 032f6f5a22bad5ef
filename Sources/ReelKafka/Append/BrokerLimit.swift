internal import ReelBase
internal import ReelLog
internal import Synchronization

/// The `BatchLimit` of a topic. Asks the brokers for theirs, and writes a log line about each change. From any thread.
final class BrokerLimit: Sendable {
    private let topic: String
    private let log: KafkaLogLine
    private let ask: @Sendable () -> Int?
    private let state: Mutex<(limit: BatchLimit, isAsking: Bool)>
    private let recordBytes: Atomic<Int>

    /// Starts with `limit`. `ask` asks the brokers for their largest batch, see `KafkaLog.init`; it may block.
    init(_ limit: BatchLimit, of topic: String, log: @escaping KafkaLogLine, ask: @escaping @Sendable () -> Int?) {
        (self.topic, self.log, self.ask) = (topic, log, ask)
        state = Mutex((limit, isAsking: false))
        recordBytes = Atomic(limit.recordBytes)
    }

    /// The largest record that is accepted, in bytes of key and value together.
    var recordBytesMax: Int { recordBytes.load(ordering: .relaxed) }

    /// The size of the largest batch that the next producer makes, in bytes; nil: it is not known yet.
    var batchBytes: Int? { state.withLock { $0.limit.isUnsettled ? nil : $0.limit.batchBytes } }

    /// Notes a refused batch with a largest record of `recordBytes`.
    func refused(recordBytes: Int) { state.withLock { $0.limit.refused(recordBytes: recordBytes) } }

    /// Asks the brokers if that is due, on a separate thread, because the answer may take seconds.
    func askIfDue() {
        let isDue = state.withLock { state in
            guard !state.isAsking else { return false }
            state.isAsking = state.limit.shouldAsk(nowMs: MonotonicClock.nowMs())
            return state.isAsking
        }
        guard isDue else { return }
        if (try? LogThread.detach("kafka-limit") { self.told(self.ask()) }) == nil { told(nil) }
    }

    private func told(_ bytes: Int?) {
        let (old, new) = state.withLock { state in
            let old = state.limit
            state.limit.told(bytes, nowMs: MonotonicClock.nowMs())
            state.isAsking = false
            recordBytes.store(state.limit.recordBytes, ordering: .relaxed)
            return (old, state.limit)
        }
        let taken = "records of up to \(new.recordBytes) bytes are taken"
        if new.recordBytes > old.recordBytes || new.batchBytes > old.batchBytes {
            log(5, "REEL", "the brokers take more again: \(taken)")
        } else if new.recordBytes < old.recordBytes || new.batchBytes < old.batchBytes {
            let usual = KafkaConfiguration.messageBytesMax
            let need = "its max.message.bytes must be \(usual) or more; until it is, \(taken)"
            log(3, "REEL", "the brokers refuse batches of the topic \(topic) that it was made for: \(need)")
        }
    }
}
