import ReelCore
import ReelNet
import ReelNode

// Waits for the fold, and the refusals of clients that exceed a limit.
extension SnapshotNode {
    /// Calls `then` once `stream` is folded up to `seq`, or after `withinMs` or `settings.reachMs` milliseconds at the
    /// latest. Calls it before returning if the seq is folded already. On the loop.
    ///
    /// - Parameters:
    ///   - seq: The seq to wait for.
    ///   - withinMs: The maximum time to wait, in milliseconds.
    ///   - payer: The payer of the wait; nil: the node waits for itself.
    /// - Returns: False if too many requests wait, in total or of this payer. Then `then` is not called.
    func reach(
        _ seq: Seq,
        of stream: StreamName,
        _ keeper: PartitionSupervisor,
        withinMs: Int64 = .max,
        for payer: Payer? = nil,
        on loop: EventLoop,
        then: @escaping () -> Void
    ) -> Bool {
        guard keeper.now.seq(of: stream) < seq else {
            then()
            return true
        }
        guard let permit = foldWaiters.take(for: payer) else { return false }
        keeper.waits.reach(
            seq,
            of: stream,
            withinMs: min(settings.reachMs, withinMs),
            on: loop,
            isFolded: { keeper.now.seq(of: stream) >= seq }
        ) {
            withExtendedLifetime(permit) {}
            then()
        }
        return true
    }

    func tooManyAnswers() -> Problem {
        limits.met(.answers)
        return Self.tooMany("answers are under way")
    }

    func tooManyWaits() -> Problem {
        limits.met(.waits)
        return Self.tooMany("questions wait for the fold")
    }

    private static func tooMany(_ what: String) -> Problem {
        var problem = Problem(
            .overloaded,
            "as many \(what) as there may be, in all or for this client; ask again"
        )
        problem.retryMs = 1_000
        return problem
    }
}
