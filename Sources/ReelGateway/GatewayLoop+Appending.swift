import ReelCore
import ReelLog
import ReelNode

// From the publishers to the log.
extension GatewayLoop {
    /// Hands what was taken to the log at the end of this round.
    func append(_ taken: [PendingRecord], to partition: Int) {
        pendingRecords[partition] += taken
        guard !isAppending, !taken.isEmpty else { return }
        isAppending = true
        loop.beforeFlush { [self] in
            isAppending = false
            for partition in pendingRecords.indices where !pendingRecords[partition].isEmpty { flush(partition) }
        }
    }

    private func flush(_ partition: Int) {
        let taken = pendingRecords[partition]
        pendingRecords[partition] = []
        let ring = rings[partition]
        let startedMs = nowMs
        for flight in taken { flight.headWhenHandedOver = ring.head }
        var (stream, key) = (taken[0].lane.stream, taken[0].lane.stream.key)
        let records = taken.map { flight in
            if flight.lane.stream != stream { (stream, key) = (flight.lane.stream, flight.lane.stream.key) }
            return LogAppend(key: key, value: flight.value, witness: ring.witness)
        }
        let done: @Sendable (Result<[Seq], LogError>) -> Void = loop.bound { [self] result in
            share.meters.appends.record(.milliseconds(nowMs - startedMs))
            reported(taken, partition, result)
        }
        share.log.append(records, to: partition, done: done)
    }

    private func reported(_ taken: [PendingRecord], _ partition: Int, _ result: Result<[Seq], LogError>) {
        switch result {
        case .success(let seqs):
            share.appended()
            do throws(ReelError) {
                answer(try ledger.reported(taken, at: seqs, head: rings[partition].head, nowMs: nowMs))
            } catch {
                diverged(error)
            }
        case .failure(let error):
            warn("log cannot be written", error)
            if ![.tooLarge, .overloaded].contains(error.code) { share.appending(fails: error, nowMs: nowMs) }
            for flight in taken { answer(ledger.failed([flight], reason(error, flight), nowMs: nowMs)) }
        }
    }

    /// What the author is told of an event that went to the log with others, where the log failed to take them all.
    private func reason(_ error: LogError, _ flight: PendingRecord) -> ReelError {
        switch error.code {
        // It is the gateway that lacks the right, no client.
        case .logUnavailable, .forbidden: ReelError(.logUnavailable, error.publicMessage, retryMs: 1_000)
        case .overloaded: ReelError(.overloaded, error.message, retryMs: 200)
        // The log takes less than it did when they were taken. Those that are not too large need only come again.
        case .tooLarge:
            refusal(ofBytes: flight.value.count, in: flight.lane.stream)
                ?? ReelError(.logUnavailable, error.publicMessage, retryMs: 0)
        default: ReelError(error.code, error.publicMessage)
        }
    }
}
