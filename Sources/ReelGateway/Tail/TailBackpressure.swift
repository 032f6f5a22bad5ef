import ReelLog
import Synchronization

/// Blocks the tails while too many bytes wait for the loops. Otherwise records that arrive faster than the slowest loop
/// takes them would pile up in memory. The log's thread waits, and with it everything that it reads.
final class TailBackpressure: Sendable {
    /// A batch on its way to all loops.
    final class Load: Sendable {
        private let backpressure: TailBackpressure
        private let bytes: Int
        private let loopsLeft: Atomic<Int>

        fileprivate init(_ backpressure: TailBackpressure, bytes: Int, loops: Int) {
            self.backpressure = backpressure
            self.bytes = bytes
            loopsLeft = Atomic(loops)
        }

        /// Called once by each loop that has taken the batch. From any thread.
        func taken() {
            if loopsLeft.wrappingSubtract(1, ordering: .relaxed).newValue == 0 { backpressure.unload(bytes) }
        }
    }

    /// The number of bytes on their way to the loops from which on the tails wait.
    static let bytesMax = 8 << 20

    private struct State {
        var bytes = 0
        var waitingTails = 0
        var isReleased = false
    }

    private let loops: Int
    private let state = Monitor(State())

    /// Creates backpressure for `loops` loops.
    init(loops: Int) {
        self.loops = loops
    }

    /// The number of tails that wait now.
    var waiting: Int { state.read { $0.waitingTails } }

    /// Waits until there is space, and counts a batch of `bytes` bytes as on its way. Blocks; do not call it on an
    /// event loop.
    func load(bytes: Int) -> Load {
        let hasRoom = state.change { state in
            guard state.bytes < Self.bytesMax || state.isReleased else { return false }
            state.bytes += bytes
            return true
        }
        if hasRoom { return Load(self, bytes: bytes, loops: loops) }
        state.change { $0.waitingTails += 1 }
        state.wait(until: { $0.bytes < Self.bytesMax || $0.isReleased }) { state in
            state.waitingTails -= 1
            state.bytes += bytes
        }
        return Load(self, bytes: bytes, loops: loops)
    }

    /// True if a batch would probably not have to wait. It may have changed by the time of the next call.
    var hasRoom: Bool { state.read { $0.bytes < Self.bytesMax / 2 } }

    private func unload(_ bytes: Int) {
        state.change { $0.bytes -= bytes }
    }

    /// Ends all waits, present and future, because the loops end.
    func release() {
        state.change { $0.isReleased = true }
    }
}
