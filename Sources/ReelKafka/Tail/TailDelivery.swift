internal import ReelLog

/// Takes a reader's batches to the sinks of its tails.
///
/// While more comes than is delivered, a thread of its own delivers: two processors share the work, and what librdkafka
/// has just read is taken from it before it has left their caches. Else the reader's thread delivers by itself, and
/// nothing waits for a change of threads.
final class TailDelivery: Sendable {
    private struct State {
        /// The first is being delivered.
        var batches: [(batch: RecordBatch, tail: TailHandle)] = []
        var isClosed = false
    }

    private let state: Monitor<State>
    private let thread: LogThread

    /// With so many batches on their way the reader waits.
    private static let batchesMax = 4

    /// Starts the thread, which `close` ends.
    init() throws(LogError) {
        let state = Monitor(State())
        self.state = state
        thread = try LogThread("kafka-deliver") { Self.run(state) }
    }

    /// Delivers a batch behind those before it; at once, unless more is there already. On the reader's thread.
    func deliver(_ batch: RecordBatch, to tail: TailHandle, isMoreThere: Bool) {
        // Nobody else adds one.
        if !isMoreThere, state.read({ $0.batches.isEmpty }) { return tail.deliver(batch) }
        state.wait(until: { $0.batches.count < Self.batchesMax }) { $0.batches.append((batch, tail)) }
    }

    /// Waits until all is delivered.
    func finish() {
        // The last batch is there until its sink has returned.
        if state.read({ $0.batches.isEmpty }) { return }
        state.wait(until: { $0.batches.isEmpty }, then: { _ in })
    }

    /// Delivers what is left and ends the thread.
    func close() {
        state.change { $0.isClosed = true }
        thread.join()
    }

    /// The caller is a sink that was called on the thread.
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
