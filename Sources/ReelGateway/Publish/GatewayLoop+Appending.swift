import ReelCore
import ReelLog
import ReelNode

// Handing published events to the log.
extension GatewayLoop {
    /// Appends accepted records to the log at the end of the loop's current round.
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
            context.meters.appends.record(.milliseconds(nowMs - startedMs))
            reported(taken, partition, result)
        }
        context.log.append(records, to: partition, done: done)
    }

    private func reported(_ taken: [PendingRecord], _ partition: Int, _ result: Result<[Seq], LogError>) {
        switch result {
        case .success(let seqs):
            health.appended()
            do throws(ReelError) {
                answer(try ledger.reported(taken, at: seqs, head: rings[partition].head, nowMs: nowMs))
            } catch {
                diverged(error)
            }
        case .failure(let error):
            warn("log cannot be written", error)
            if ![.tooLarge, .overloaded].contains(error.code) { health.appending(fails: error, nowMs: nowMs) }
            for flight in taken { answer(ledger.failed([flight], reason(error, flight), nowMs: nowMs)) }
        }
    }

    /// Returns the error for the author of one event after an append of several records has failed.
    private func reason(_ error: LogError, _ flight: PendingRecord) -> ReelError {
        switch error.code {
        // The gateway lacks this right, not the client.
        case .logUnavailable, .forbidden: ReelError(.logUnavailable, error.publicMessage, retryMs: 1_000)
        case .overloaded: ReelError(.overloaded, error.message, retryMs: 200)
        // The log's size limit has shrunk since the events were accepted. Events within the new limit need only be sent
        // again.
        case .tooLarge:
            refusal(ofBytes: flight.value.count, in: flight.lane.stream)
                ?? ReelError(.logUnavailable, error.publicMessage, retryMs: 0)
        default: ReelError(error.code, error.publicMessage)
        }
    }
}
