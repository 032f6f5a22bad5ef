internal import ReelLog

/// Delivers a reader's batches to the sinks of its tails.
///
/// While records arrive faster than they are delivered, a separate thread delivers them. Two cores then share the work,
/// and messages are taken from librdkafka while they are still in the cache. Otherwise the reader's thread delivers
/// directly, without the delay of a thread change.
final class TailDelivery: Sendable {
    private struct State {
        /// The batches to deliver. The first one is being delivered.
        var batches: [(batch: RecordBatch, tail: TailHandle)] = []
        var isClosed = false
    }

    private let state: Monitor<State>
    private let thread: LogThread

    /// The number of waiting batches at which the reader waits.
    private static let batchesMax = 4

    /// Starts the thread, which `close` ends.
    init() throws(LogError) {
        let state = Monitor(State())
        self.state = state
        thread = try LogThread("kafka-deliver") { Self.run(state) }
    }

    /// Delivers a batch after all earlier ones: directly, if none wait and no more messages are there. On the reader's
    /// thread.
    func deliver(_ batch: RecordBatch, to tail: TailHandle, isMoreThere: Bool) {
        // Only this thread adds batches, so the queue stays empty.
        if !isMoreThere, state.read({ $0.batches.isEmpty }) { return tail.deliver(batch) }
        state.wait(until: { $0.batches.count < Self.batchesMax }) { $0.batches.append((batch, tail)) }
    }

    /// Waits until all batches are delivered.
    func finish() {
        // A batch is in the queue until its sink has returned.
        if state.read({ $0.batches.isEmpty }) { return }
        state.wait(until: { $0.batches.isEmpty }, then: { _ in })
    }

    /// Delivers the remaining batches and ends the thread.
    func close() {
        state.change { $0.isClosed = true }
        thread.join()
    }

    /// True if the caller is a sink that was called on the thread.
    var isCurrent: Bool { thread.isCurrent }

    private static func run(_ state: Monitor<State>) {
        while true {
            let next = state.wait(until: { !$0.batches.isEmpty || $0.isClosed }) { $0.batches.first }
            guard let next else { return }
            next.tail.deliver(next.batch)
            state.change { _ = $0.batches.removeFirst() }
        }
    }
}
