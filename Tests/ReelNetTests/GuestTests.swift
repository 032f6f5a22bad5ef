import Foundation
import TestSupport
import Testing

@testable import ReelNet

/// A loop in a process that belongs to another program.
@Suite(.timeLimit(.minutes(5))) struct GuestTests {
    @Test("long work occupies no thread of a pool that has one, and a loop that stops waits for it")
    func smallPool() async {
        await #expect(processExitsWith: .success) {
            setenv("UV_THREADPOOL_SIZE", "1", 1)
            let loop = try EventLoop()
            let gate = DispatchSemaphore(value: 0)
            // A process does not end before the threads of its pool do.
            defer { for _ in 0..<20 { gate.signal() } }
            let ended = Counts()
            try await loop.run {
                for _ in 0..<20 { loop.offload(isLong: true, { gate.wait() }, then: { ended.add("long") }) }
            }
            for _ in 0..<20 { try await Self.offload(isLong: false, on: loop) }
            #expect(ended["long"] == 0)
            loop.stop()
            try await eventually("the loop takes no more jobs") { !loop.execute {} }
            for _ in 0..<20 { gate.signal() }
            loop.join()
            #expect(ended["long"] == 20)
        }
    }

    /// Returns once a piece of work has run off the loop and its result is back.
    private static func offload(isLong: Bool, on loop: EventLoop) async throws {
        let isTaken = Counts()
        try await loop.run { loop.offload(isLong: isLong, {}, then: { isTaken.add("") }) }
        try await eventually("the result of a piece of work") { isTaken[""] == 1 }
    }
}
