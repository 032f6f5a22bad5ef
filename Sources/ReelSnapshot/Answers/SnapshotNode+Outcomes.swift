public import ReelCore
import ReelLog
public import ReelNet
public import ReelNode

// Outcomes of acknowledged events.
extension SnapshotNode {
    /// Finds the outcomes of acknowledged events of a stream; see `StateSource.outcomes`.
    public func outcomes(
        of acks: [ServerFrame.Acked],
        in stream: StreamName,
        epoch: Epoch,
        withinMs: Int64,
        on loop: EventLoop,
        then: @escaping (Result<[AckOutcome], Problem>) -> Void
    ) {
        let then = LoopBound(then, on: loop)
        func refuse(_ problem: Problem) { loop.execute { then.value(.failure(problem)) } }
        let keeper = keepers[stream.partition(of: log.partitions)]
        let own = log.epoch
        do throws(Problem) {
            try Self.check(keeper, own, epoch)
        } catch {
            // Waiting can only help where the node has not folded far enough.
            if error.code != .nodeBehind { return refuse(error) }
        }
        let seq = acks.map(\.seq).max() ?? .none
        let isTaken = reach(seq, of: stream, keeper, withinMs: withinMs, on: loop) { [self] in
            guard let permit = openResponses.take() else { return refuse(tooManyAnswers()) }
            let reader = reader(of: keeper)
            loop.offload {
                Result { () throws(Problem) in
                    try Self.check(keeper, own, epoch)
                    do {
                        return try reader.outcomes(of: acks, in: stream)
                    } catch {
                        throw Self.problem(of: error, keeper)
                    }
                }
            } then: { result in
                withExtendedLifetime(permit) {}
                then.value(result)
            }
        }
        if !isTaken { refuse(tooManyWaits()) }
    }

    /// Returns the response to `POST …/outcomes`.
    static func outcomes(
        of acks: [ServerFrame.Acked],
        _ stream: StreamName,
        _ epoch: Epoch,
        _ reader: StateReader
    ) throws -> HTTPResponse {
        let outcomes = try reader.outcomes(of: acks, in: stream)
        var writer = JSONObjectWriter()
        writer.member("stream", stream.description)
        writer.member("epoch", epoch.description)
        writer.objects("acks", outcomes) { $1.write(to: &$0) }
        return .json(writer.finish())
    }
}
