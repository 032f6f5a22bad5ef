import ReelCore
import ReelLog
import Testing

@testable import ReelGateway

/// Tests when a wait for a position ends.
@Suite struct PositionTimerTests {
    private let wanted = ReadRequest(stream: StreamName("s")!, epoch: nil, lowest: 8, highest: 7)

    @Test("a wait that nothing ends costs one timer, at its deadline")
    func oneTimer() throws {
        let still = try StillGateway { $0.aheadMs = 5_000 }
        var errors: [ErrorCode?] = []
        still.gateway.waits.reach(wanted) { errors.append($0?.error.code) }
        for _ in 0..<99 { still.loop.pass(ms: 50) }
        #expect(still.loop.fired == 0 && errors.isEmpty)
        for _ in 0..<2 { still.loop.pass(ms: 50) }
        #expect(still.loop.fired == 1 && errors == [.aheadOfLog])
        still.loop.pass(ms: 60_000)
        #expect(still.loop.fired == 1, "nobody waits any longer")
    }

    @Test("waits end at their own deadlines, those of about the same time together")
    func deadlines() throws {
        let still = try StillGateway { $0.aheadMs = 1_000 }
        var ended: [Int64: Int] = [:]
        for _ in 0..<100 {
            let begunMs = still.loop.nowMs
            still.gateway.waits.reach(wanted) { _ in ended[begunMs] = Int(still.loop.nowMs - begunMs) }
            still.loop.pass(ms: 10)
        }
        for _ in 0..<200 { still.loop.pass(ms: 10) }
        #expect(ended.count == 100)
        #expect(ended.values.allSatisfy { (1_000...1_100).contains($0) })
        #expect(still.loop.fired <= 25, "at most one in 50 ms")
    }
}
