import ReelCore
public import ReelLog
import ReelNet
import Synchronization

/// Checks at intervals if the store of the log still has the required settings, such as those of its topics. They were
/// right when the node started, but an operator can change them while it runs.
public final class StoreWatch: Sendable {
    private struct State {
        var complaints: [String] = []
        var isAsking = false
    }

    /// The interval of the checks.
    public static let pause = Duration.seconds(30)

    private let store: any LogStore
    private let logger: Logger
    private let state = Mutex(State())

    /// A watch of this store. It starts with `start`.
    public init(_ store: any LogStore, logger: Logger) {
        self.store = store
        self.logger = logger
    }

    /// The wrong settings and the remedies; nil: all settings are right. From any thread.
    public var notice: String? {
        state.withLock { $0.complaints.isEmpty ? nil : $0.complaints.joined(separator: "; ") }
    }

    /// Checks the store every `pause` until the node ends.
    public func start(until end: GracefulShutdown, every pause: Duration = StoreWatch.pause) {
        let loop = end.loop
        loop.execute { [self] in loop.timer(after: pause, every: pause) { self.ask(on: loop) } }
    }

    private func ask(on loop: EventLoop) {
        let shouldAsk = state.withLock { state in
            defer { state.isAsking = true }
            return !state.isAsking
        }
        guard shouldAsk else { return }
        let store = store
        loop.offload {
            // If the store does not answer, nothing is known about its settings.
            try? store.complaints()
        } then: { [self] found in
            answered(found)
        }
    }

    private func answered(_ found: [String]?) {
        let before = state.withLock { state in
            state.isAsking = false
            defer { if let found { state.complaints = found } }
            return state.complaints
        }
        guard let found else { return }
        for complaint in found where !before.contains(complaint) {
            logger.error("the log's store is not as it must be", ["detail": complaint])
        }
        for complaint in before where !found.contains(complaint) {
            logger.info("the log's store is as it must be again", ["detail": complaint])
        }
    }
}
