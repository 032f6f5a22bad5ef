import Foundation
import TestSupport
import Testing

@testable import ReelNet

/// A loop in a process that belongs to another program.
@Suite(.timeLimit(.minutes(5))) struct GuestTests {
    @Test("a loop changes neither the environment nor the handling of SIGPIPE")
    func processState() throws {
        let loop = try EventLoop()
        defer { loop.stop() }
        let atStart = try Data(contentsOf: URL(fileURLWithPath: "/proc/self/environ")).split(separator: 0)
        let name = "UV_THREADPOOL_SIZE"
        let isSet = atStart.contains { $0.starts(with: Data("\(name)=".utf8)) }
        #expect((getenv(name) != nil) == isSet)
        var handling = sigaction()
        sigaction(SIGPIPE, nil, &handling)
        let handler = unsafeBitCast(handling.__sigaction_handler.sa_handler, to: Int.self)
        #expect(handler == unsafeBitCast(SIG_DFL, to: Int.self))
    }

    @Test("a write to a closed pipe on the loop's thread or its pool is an error and raises no signal")
    func closedPipe() async throws {
        let loop = try EventLoop()
        defer { loop.stop() }
        #expect(try await loop.run { Self.errorOfAWrite() } == EPIPE)
        let error = try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Int32, any Error>) in
            let isTaken = loop.execute {
                loop.offload({ Self.errorOfAWrite() }, then: { continuation.resume(returning: $0) })
            }
            if !isTaken { continuation.resume(throwing: NetError(.closed, "the loop has stopped")) }
        }
        #expect(error == EPIPE)
    }

    /// The error number of a write to a pipe that nobody reads.
    private static func errorOfAWrite() -> Int32 {
        var ends: [Int32] = [0, 0]
        guard pipe(&ends) == 0 else { return errno }
        close(ends[0])
        defer { close(ends[1]) }
        return write(ends[1], "x", 1) < 0 ? errno : 0
    }

    /// Milliseconds of machines that run for a second, for 6.8 and 13.6 years, and for as long as 63 bits count.
    @Test(
        "deadlines work at every value of the machine's clock",
        arguments: [1_000, (1 << 31) * 100, (1 << 32) * 100, 1 << 62] as [UInt64]
    )
    func clocks(_ nowMs: UInt64) {
        let last = nowMs / DeadlineWheel.tickMs
        #expect(DeadlineWheel.tick(due: 0, after: last) == last + 1)
        #expect(DeadlineWheel.tick(due: (last + 1) * 100 + 1, after: last) == last + 2)
        #expect(DeadlineWheel.tick(due: (last + 7) * 100, after: last) == last + 7)
        #expect(DeadlineWheel.tick(due: .max - 1, after: last) == last + 256)
        for near in last - 1...last + 1 {
            var marks = Set<UInt32>()
            for tick in near + 1...near + 256 {
                let mark = DeadlineWheel.mark(tick)
                #expect(mark != 0 && marks.insert(mark).inserted)
                #expect(DeadlineWheel.isSoon(mark, asTick: tick, after: near))
                #expect(DeadlineWheel.isSoon(mark, asTick: near + 256, after: near))
                #expect(DeadlineWheel.isSoon(mark, asTick: near + 1, after: near) == (tick == near + 1))
            }
        }
    }
}
