import ReelCore
import ReelLog
import ReelNet

/// Asks every partition of the log for its ends at regular intervals. So an unavailable log is noticed even if no
/// client publishes: a silent tail may only have no new records.
///
/// There is one question at a time, on a thread that may block. On one loop of the gateway.
final class LogProbe {
    /// The pause in milliseconds between two rounds over all partitions.
    static let pauseMs: Int64 = 1_000
    /// The time in milliseconds without an answer after which a partition counts as unavailable. A change of its leader
    /// takes less.
    static let patienceMs: Int64 = 3_000

    private enum Phase {
        case resting(untilMs: Int64)
        case asking(partition: Int, sinceMs: Int64)
    }

    private let context: GatewayContext
    private let loop: EventLoop
    private var phase = Phase.resting(untilMs: 0)

    init(_ context: GatewayContext, on loop: EventLoop) {
        self.context = context
        self.loop = loop
    }

    /// Checks the clock. Called a few times a second.
    func tick(nowMs: Int64) {
        switch phase {
        case .resting(let untilMs):
            if nowMs >= untilMs { ask(0) }
        case .asking(let partition, let sinceMs):
            guard nowMs - sinceMs >= Self.patienceMs else { return }
            context.health.silence(
                partition,
                is: ReelError(
                    .logUnavailable,
                    "partition \(partition) of the log has not answered for \(nowMs - sinceMs) ms"
                )
            )
        }
    }

    private func ask(_ partition: Int) {
        phase = .asking(partition: partition, sinceMs: loop.nowMs)
        let log = context.log
        loop.offload {
            Result { () throws(LogError) in try log.bounds(partition) }
        } then: { [self] result in
            switch result {
            case .success(let bounds):
                context.health.logEnds(at: bounds.last, in: partition)
                context.health.silence(partition, is: nil)
            case .failure(let error): context.health.silence(partition, is: ReelError(error.code, error.message))
            }
            if partition + 1 < context.partitions {
                ask(partition + 1)
            } else {
                phase = .resting(untilMs: loop.nowMs + Self.pauseMs)
            }
        }
    }
}

@available(*, unavailable)
extension LogProbe: Sendable {}
