import ReelCore
import ReelLog
import ReelNode

extension GatewayLoop {
    /// Calls back without a failure once a client may read seqs from `lowest` to `highest`, given in this epoch; or
    /// with the reason why it may not.
    func admit(
        _ stream: StreamName,
        epoch: Epoch?,
        lowest: Seq,
        highest: Seq,
        then: @escaping (ServerFrame.Failure?) -> Void
    ) {
        if let divergence = share.divergence { return then(failure(divergence, stream)) }
        if let epoch, epoch != share.epoch {
            let error = ReelError(.epochChanged, "found the epoch \(epoch), this log's is \(share.epoch)")
            return then(failure(error, stream))
        }
        let partition = stream.partition(of: share.partitions)
        reach(highest, of: partition, holder: epoch == nil ? nil : stream) { [self] error in
            if let error { return then(failure(error, stream)) }
            let first = share.first(partition)
            guard first <= 0 || lowest >= first else {
                let error = ReelError(.truncated, "found seq \(lowest), the log begins at \(first): take a snapshot")
                return then(failure(error, stream))
            }
            then(nil)
        }
    }

    /// An error about a stream, with what its code calls for.
    func failure(_ error: ReelError, _ stream: StreamName) -> ServerFrame.Failure {
        var failure = ServerFrame.Failure(error, stream: stream)
        let partition = stream.partition(of: share.partitions)
        switch error.code {
        case .epochChanged: failure.epoch = share.next(partition) ?? share.epoch
        case .truncated:
            failure.first = share.first(partition)
            failure.head = rings[partition].head
        case .nodeBehind, .aheadOfLog: failure.head = rings[partition].head
        default: break
        }
        return failure
    }

    /// Tells the operator what clients are not told.
    func warn(_ event: String, _ error: LogError) {
        guard error.publicMessage != error.message, let unsaid = logWarnings.admit(nowMs: nowMs) else { return }
        share.logger.warning(event, ["detail": error.message, "lines_left_out": "\(unsaid)"])
    }

    /// What a reader is told when the log itself could not be read.
    func reason(_ error: LogError, _ stream: StreamName) -> ReelError {
        if error.code == .truncated, let first = error.seq {
            share.bounds(stream.partition(of: share.partitions), are: LogBounds(first: first, last: first))
        }
        let retryMs: Int64? = error.code == .logUnavailable ? 1_000 : nil
        warn("log cannot be read", error)
        return ReelError(error.code, error.publicMessage, retryMs: retryMs)
    }
}
