import ReelCore
public import ReelLog
import ReelNet
import Synchronization

/// Checks at intervals if another log has become the current one, and then ends the node, so that it can restart with
/// that log.
public final class EpochWatch: Sendable {
    private struct State {
        var next: CurrentLog?
        var isAsking = false
        var ticks = 0
    }

    /// The interval of ticks. After the end of the node's epoch the store is queried at each tick.
    private static let pollInterval = Duration.milliseconds(250)
    private static let ticksPerPollBeforeEnd = 20
    /// The time within which the clients must leave, in milliseconds: the next node waits for them.
    private static let spreadMs: Int64 = 300

    private let store: any LogStore
    private let current: CurrentLog
    private let end: GracefulShutdown
    private let logger: Logger
    private let hasEnded: @Sendable () -> Bool
    private let state = Mutex(State())

    /// Starts a watch, which lasts as long as the node's loop runs.
    ///
    /// - Parameters:
    ///   - store: The store that names the current log.
    ///   - current: The log of the node.
    ///   - end: The shutdown that ends the node.
    ///   - logger: The logger of the node.
    ///   - hasEnded: Returns true once the node has read the end of the epoch. Called on the node's loop.
    public init(
        _ store: any LogStore,
        current: CurrentLog,
        end: GracefulShutdown,
        logger: Logger,
        hasEnded: @escaping @Sendable () -> Bool
    ) {
        self.store = store
        self.current = current
        self.end = end
        self.logger = logger
        self.hasEnded = hasEnded
        end.loop.execute { [self] in
            self.end.loop.timer(after: Self.pollInterval, every: Self.pollInterval) { self.tick() }
        }
    }

    /// The log with which the node must restart, once it has ended; nil: it has ended for another reason.
    public var next: CurrentLog? { end.isRequested ? nil : state.withLock { $0.next } }

    private func tick() {
        let hasEnded = hasEnded()
        let shouldAsk = state.withLock { state in
            state.ticks += 1
            guard !state.isAsking, state.next == nil else { return false }
            state.isAsking = hasEnded || state.ticks.isMultiple(of: Self.ticksPerPollBeforeEnd)
            return state.isAsking
        }
        guard shouldAsk else { return }
        let store = store
        end.loop.offload {
            // If the store does not answer, nothing is known about its epoch.
            try? store.current()
        } then: { [self] current in
            answered(current ?? nil)
        }
    }

    private func answered(_ found: CurrentLog?) {
        let next: CurrentLog? = state.withLock { state in
            state.isAsking = false
            // Brokers restored from a backup may name an earlier log; the node never returns to one.
            if let found, found.epoch != current.epoch, found.number > current.number { state.next = found }
            return state.next
        }
        guard let next else { return }
        logger.info("moving to the next epoch", ["epoch": "\(next.epoch)", "number": "\(next.number)"])
        end.restartForEpoch(withinMs: Self.spreadMs)
    }
}
