import ReelCore
import ReelNet
import ReelNode

// Waiting for the fold, and what a client is told for whom there is no place.
extension SnapshotNode {
    /// Calls back once a stream is folded up to a seq; also after a while without, at the latest after `withinMs`.
    /// Returns false, and does not call back, if as many questions wait as may, in all or of this payer. Nil for the
    /// payer: the node itself asks.
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
        guard let place = foldWaiters.take(for: payer) else { return false }
        keeper.waits.reach(
            seq,
            of: stream,
            withinMs: min(settings.reachMs, withinMs),
            on: loop,
            isFolded: { keeper.now.seq(of: stream) >= seq }
        ) {
            withExtendedLifetime(place) {}
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
