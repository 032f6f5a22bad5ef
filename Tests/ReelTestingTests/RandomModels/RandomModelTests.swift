import TestSupport
import Testing

/// Several builds of one app, which share a stream.
@Suite(.timeLimit(.minutes(60))) struct RandomModelTests {
    @Test("random models and edits on all devices end as the checker folds them") func checked() async throws {
        try await Seeds.runAsync(40) { seed in
            var run = try RandomModelRun(seed: seed)
            try await run.run(steps: 90)
        }
    }
}
