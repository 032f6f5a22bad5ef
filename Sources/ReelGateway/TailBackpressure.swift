import ReelLog
import Synchronization

/// Holds the tails up while the loops have too much of them before them: what the log brings faster than the slowest
/// loop takes it would pile up in memory. The log's thread waits, and with it all that it reads.
final class TailBackpressure: Sendable {
    /// A batch on its way to all loops.
    final class Load: Sendable {
        private let brake: TailBackpressure
        private let bytes: Int
        private let loopsLeft: Atomic<Int>

        fileprivate init(_ brake: TailBackpressure, bytes: Int, loops: Int) {
            self.brake = brake
            self.bytes = bytes
            loopsLeft = Atomic(loops)
        }

        /// Another loop has it.
        func taken() {
            if loopsLeft.wrappingSubtract(1, ordering: .relaxed).newValue == 0 { brake.took(bytes) }
        }
    }

    /// With so many bytes before the loops the tails wait.
    static let bytesMax = 8 << 20

    private struct State {
        var bytes = 0
        var waitingTails = 0
        var isReleased = false
    }

    private let loops: Int
    private let state = Monitor(State())

    /// For so many loops.
    init(loops: Int) {
        self.loops = loops
    }

    /// How many tails wait now.
    var waiting: Int { state.read { $0.waitingTails } }

    /// Waits until there is room, and counts a batch of so many bytes as on its way. Not on an event loop.
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

    /// Whether a batch would not have to wait, as far as can be seen.
    var hasRoom: Bool { state.read { $0.bytes < Self.bytesMax / 2 } }

    private func took(_ bytes: Int) {
        state.change { $0.bytes -= bytes }
    }

    /// Nothing waits any more: the loops end.
    func release() {
        state.change { $0.isReleased = true }
    }
}
