import ReelCore
import ReelLog
import ReelNode

extension GatewayLoop {
    /// Checks if a client may read a range of a stream's seqs. Waits until this loop has read `highest`. On the loop.
    ///
    /// - Parameters:
    ///   - stream: The stream.
    ///   - epoch: The epoch of the client's position; nil if the client names none.
    ///   - lowest: The lowest seq that the client wants to read.
    ///   - highest: The highest seq that the client wants to read or already holds.
    ///   - then: Called with nil if the client may read, or with the reason why not. It may be called before `admit`
    ///     returns.
    func admit(
        _ stream: StreamName,
        epoch: Epoch?,
        lowest: Seq,
        highest: Seq,
        then: @escaping (ServerFrame.Failure?) -> Void
    ) {
        if let divergence = health.divergence { return then(failure(divergence, stream)) }
        if let epoch, epoch != context.epoch {
            let error = ReelError(.epochChanged, "found the epoch \(epoch), this log's is \(context.epoch)")
            return then(failure(error, stream))
        }
        let partition = stream.partition(of: context.partitions)
        waits.reach(highest, of: partition, holder: epoch == nil ? nil : stream) { [self] error in
            if let error { return then(failure(error, stream)) }
            let first = health.first(of: partition)
            guard first <= 0 || lowest >= first else {
                let error = ReelError(.truncated, "found seq \(lowest), the log begins at \(first): take a snapshot")
                return then(failure(error, stream))
            }
            then(nil)
        }
    }

    /// Returns the failure frame for an error about a stream, with the members that the error's code requires.
    func failure(_ error: ReelError, _ stream: StreamName) -> ServerFrame.Failure {
        var failure = ServerFrame.Failure(error, stream: stream)
        let partition = stream.partition(of: context.partitions)
        switch error.code {
        case .epochChanged: failure.epoch = health.end(of: partition)?.next ?? context.epoch
        case .truncated:
            failure.first = health.first(of: partition)
            failure.head = rings[partition].head
        case .nodeBehind, .aheadOfLog: failure.head = rings[partition].head
        default: break
        }
        return failure
    }

    /// Returns the error for a reader if the log itself could not be read.
    func reason(_ error: LogError, _ stream: StreamName) -> ReelError {
        if error.code == .truncated, let first = error.seq {
            health.logBegins(at: first, in: stream.partition(of: context.partitions))
        }
        let retryMs: Int64? = error.code == .logUnavailable ? 1_000 : nil
        warn("log cannot be read", error)
        return ReelError(error.code, error.publicMessage, retryMs: retryMs)
    }
}
