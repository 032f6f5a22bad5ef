import ReelCore
public import ReelLog
import ReelNet
import Synchronization

/// Looks from time to time whether the store of the log still is as it must be, such as the settings of its topics:
/// they were right when the node started, and somebody can change them while it runs.
public final class StoreWatch: Sendable {
    private struct State {
        var complaints: [String] = []
        var isAsking = false
    }

    /// How often the store is asked.
    public static let pause = Duration.seconds(30)

    private let store: any LogStore
    private let logger: Logger
    private let state = Mutex(State())

    /// A watch of this store. It asks nothing before it is started.
    public init(_ store: any LogStore, logger: Logger) {
        self.store = store
        self.logger = logger
    }

    /// What is not as it must be, and what to do; nil: all is. From any thread.
    public var notice: String? {
        state.withLock { $0.complaints.isEmpty ? nil : $0.complaints.joined(separator: "; ") }
    }

    /// Asks again and again until the node ends. `pause`: between two questions.
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
            // A store that does not answer says nothing of its settings.
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
