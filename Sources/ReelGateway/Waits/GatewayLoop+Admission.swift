import ReelCore
import ReelLog
import ReelNode

extension GatewayLoop {
    /// Checks if a client may read a part of a stream. Waits until this loop has read its highest seq. On the loop.
    ///
    /// - Parameters:
    ///   - request: The part of the stream.
    ///   - then: Called with nil if the client may read, or with the reason why not. It may be called before `admit`
    ///     returns.
    func admit(_ request: ReadRequest, then: @escaping (ServerFrame.Failure?) -> Void) {
        if let divergence = health.divergence { return then(failure(divergence, request.stream)) }
        if let epoch = request.epoch, epoch != context.epoch {
            let error = ReelError(.epochChanged, "found the epoch \(epoch), this log's is \(context.epoch)")
            return then(failure(error, request.stream))
        }
        waits.reach(request, then: then)
    }

    /// Returns the refusal of a client once its wait has ended; nil: the client may read. `error` is the reason why the
    /// highest seq was not read; nil: it was read.
    func refusal(of request: ReadRequest, after error: ReelError?) -> ServerFrame.Failure? {
        if let error { return failure(error, request.stream) }
        let first = health.first(of: request.stream.partition(of: context.partitions))
        guard first > 0, request.lowest < first else { return nil }
        let lost = ReelError(.truncated, "found seq \(request.lowest), the log begins at \(first): take a snapshot")
        return failure(lost, request.stream)
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
