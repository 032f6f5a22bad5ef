import EventLogConformance
import Foundation
import ReelCore
import ReelLog
import ReelNet
import Synchronization
import TestSupport
import Testing

@testable import ReelGateway
@testable import ReelNode

/// Tests that the log cannot get ahead of the loops without a bound.
@Suite(.timeLimit(.minutes(15))) struct TailBackpressureTests {
    @Test("the tail waits for the slowest loop") func theTailWaitsFor() async throws {
        let backpressure = TailBackpressure(loops: 2)
        let first = backpressure.load(bytes: TailBackpressure.bytesMax)
        let loads = Loads()
        Thread.detachNewThread { loads.add(backpressure.load(bytes: 1)) }
        first.taken()
        try await eventually("it waits: one loop has not taken the first") { backpressure.waiting == 1 }
        #expect(loads.count == 0)
        first.taken()
        try await eventually("room") { loads.count == 1 }
    }

    @Test("the end of the loops releases all waiting tails") func endReleasesTails() async throws {
        let backpressure = TailBackpressure(loops: 1)
        _ = backpressure.load(bytes: TailBackpressure.bytesMax)
        let loads = Loads()
        for _ in 0..<2 { Thread.detachNewThread { loads.add(backpressure.load(bytes: 1)) } }
        try await eventually("both wait") { backpressure.waiting == 2 }
        backpressure.release()
        try await eventually("both go on") { loads.count == 2 }
    }

    private final class Loads: Sendable {
        private let all = Mutex<[TailBackpressure.Load]>([])
        var count: Int { all.withLock { $0.count } }
        func add(_ load: TailBackpressure.Load) { all.withLock { $0.append(load) } }
    }

    /// The test blocks one loop. One thread of the log reads two partitions.
    @Test("a loop that is held up holds the log up and misses nothing") func aLoopThatIs() async throws {
        let log = try MemoryLog(partitions: 2)
        try await LiveGateway.with(log, { $0.node.loops = 2 }) { live in
            let isHeld = DispatchSemaphore(value: 0)
            // `end` runs on this loop; the other loop is not blocked.
            live.gateway.end.loop.execute { isHeld.wait() }
            let count: Seq = 64
            let text = String(repeating: "x", count: 1 << 20)
            for index in 0..<count {
                let value = Batches.value(Site(high: 1, low: 1), Op(index), text, base: -1)
                for partition in 0..<2 {
                    log.append([LogAppend(key: Array("a".utf8), value: value)], to: partition) { _ in }
                }
            }
            func read() -> Seq { (0..<2).reduce(0) { $0 + live.gateway.context.health.seq(of: $1) + 1 } }
            try await eventually("the tail has come as far as it may") { live.gateway.backpressure.waiting == 1 }
            #expect((8...16).contains(read()))
            isHeld.signal()
            try await eventually("all was read") { read() == 2 * count }
        }
    }
}
