import Foundation
import Synchronization
import TestSupport
import Testing

@testable import ReelNet

/// Tests a loop in a process that belongs to another program.
@Suite(.timeLimit(.minutes(5))) struct GuestTests {
    @Test("a loop changes neither the environment nor what the process does on a signal")
    func processState() async {
        await #expect(processExitsWith: .success) {
            unsetenv("UV_THREADPOOL_SIZE")
            Self.acceptBrokenPipes()
            let before = Self.handlers()
            let loop = try EventLoop()
            try await Self.offload(isLong: false, on: loop)
            try await Self.offload(isLong: true, on: loop)
            #expect(getenv("UV_THREADPOOL_SIZE") == nil)
            #expect(Self.handlers() == before)
            #expect(try await loop.run { !Self.blocksBrokenPipes() }, "threads inherit what a loop's thread blocks")
            loop.stop()
            loop.join()
        }
    }

    @Test("a write to a closed connection is an error and raises no signal, at once or later")
    func closedConnection() async {
        await #expect(processExitsWith: .success) {
            Self.acceptBrokenPipes()
            let loop = try EventLoop()
            for isLate in [false, true] {
                var ends: [Int32] = [0, 0]
                #expect(socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &ends) == 0)
                let (near, far) = (ends[0], ends[1])
                let errors = Errors()
                if !isLate { close(far) }
                let connection = try await loop.run {
                    let connection = try TCPConnection(loop: loop, descriptor: near)
                    connection.handler = errors
                    connection.write([UInt8](repeating: 0, count: 10_000_000))
                    return LoopBound(connection, on: loop)
                }
                if isLate {
                    // The kernel takes a part of the bytes, and libuv waits until it can write the rest.
                    try await eventually("a part is written") { try await loop.run { connection.value.passed > 0 } }
                    close(far)
                }
                try await eventually("the connection ends") { errors.codes == [.reset] }
                #expect(try await loop.run { !Self.blocksBrokenPipes() })
            }
            loop.stop()
            loop.join()
        }
    }

    @Test("long work occupies no thread of a pool that has one, and a loop that stops waits for it")
    func smallPool() async {
        await #expect(processExitsWith: .success) {
            setenv("UV_THREADPOOL_SIZE", "1", 1)
            let loop = try EventLoop()
            let gate = DispatchSemaphore(value: 0)
            // The process cannot exit while threads of its pool wait.
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

    /// The uptime in milliseconds: one second, 6.8 and 13.6 years, and values of 63 and 64 bits.
    @Test(
        "deadlines work at every value of the machine's clock",
        arguments: [1_000, (1 << 31) * 100, (1 << 32) * 100, 1 << 62, .max] as [UInt64]
    )
    func clocks(_ nowMs: UInt64) {
        let last = nowMs / DeadlineWheel.tickMs
        #expect(DeadlineWheel.tick(due: 0, after: last) == last + 1)
        #expect(DeadlineWheel.tick(due: .max, after: last) == min(last + 256, .max / 100 + 1))
        if nowMs < .max / 2 {
            #expect(DeadlineWheel.tick(due: (last + 1) * 100 + 1, after: last) == last + 2)
            #expect(DeadlineWheel.tick(due: (last + 7) * 100, after: last) == last + 7)
        }
        for delay in [.zero, .seconds(1), .seconds(Int64.max)] as [Duration] {
            let due = Timed.due(delay, from: nowMs)
            #expect(due >= min(nowMs, .max - 1) && due < .max, "a deadline that is set is not one that is off")
        }
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

    /// Returns once a piece of work has run outside the loop and its result has arrived.
    private static func offload(isLong: Bool, on loop: EventLoop) async throws {
        let isTaken = Counts()
        try await loop.run { loop.offload(isLong: isLong, {}, then: { isTaken.add("") }) }
        try await eventually("the result of a piece of work") { isTaken[""] == 1 }
    }

    /// Lets SIGPIPE end the process. A process and a loop inherit the blocked signals of the thread that starts them.
    private static func acceptBrokenPipes() {
        signal(SIGPIPE, SIG_DFL)
        var signals = sigset_t()
        sigemptyset(&signals)
        sigaddset(&signals, SIGPIPE)
        pthread_sigmask(SIG_UNBLOCK, &signals, nil)
    }

    /// Returns the addresses of the process's signal handlers.
    private static func handlers() -> [Int] {
        (1..<65).map { number in
            var handling = sigaction()
            guard sigaction(Int32(number), nil, &handling) == 0 else { return -1 }
            return unsafeBitCast(handling.__sigaction_handler.sa_handler, to: Int.self)
        }
    }

    /// Returns true if the calling thread blocks SIGPIPE.
    private static func blocksBrokenPipes() -> Bool {
        var signals = sigset_t()
        pthread_sigmask(SIG_BLOCK, nil, &signals)
        return sigismember(&signals, SIGPIPE) == 1
    }
}

/// Records the errors with which a connection ended.
private final class Errors: TCPHandler, Sendable {
    private let errors = Mutex<[NetError.Code]>([])

    var codes: [NetError.Code] { errors.withLock { $0 } }

    func closed(_ error: NetError?) {
        errors.withLock { $0.append(error?.code ?? .closed) }
    }

    func received(_ bytes: Span<UInt8>) {}
    func ended() {}
    func drained() {}
    func deadlinePassed() {}
}
