import ReelCore
import TestSupport
import Testing

@testable import ReelGateway

/// Compares the pending records of a lane with a plain list.
@Suite struct PendingRecordsTests {
    @Test("it finds what a list would find") func itFindsWhatA() {
        let seed = TestSeed.value
        var random = SeededNumbers(seed)
        let lane = PublisherKey(stream: StreamName("todo")!, site: Site(high: 1, low: 1))
        for _ in 0..<600 {
            let pendingRecords = PendingRecords()
            var list: [PendingRecord] = []
            var next: Op = 0
            // One add in `oneAnew` repeats an earlier op, from every second add to almost none.
            let oneAnew = Int.random(in: 2..<40, using: &random)
            for _ in 0..<200 {
                switch Int.random(in: 0..<2, using: &random) {
                case 0:
                    let isAnew = Int.random(in: 0..<oneAnew, using: &random) == 0
                    let op = isAnew ? Op.random(in: max(0, next - 5)...next, using: &random) : next
                    if !isAnew { next += 1 }
                    let record = PendingRecord(lane, op, [], partition: 0, connection: 1, takenMs: 0)
                    pendingRecords.add(record)
                    list.append(record)
                case 1 where !list.isEmpty:
                    let index = Bool.random(using: &random) ? 0 : Int.random(in: 0..<list.count, using: &random)
                    let record = list.remove(at: index)
                    record.isOver = true
                    pendingRecords.end(record)
                default: break
                }
                #expect(pendingRecords.count == list.count, "seed \(seed)")
                let op = list.randomElement(using: &random)?.op ?? Op.random(in: 0...next, using: &random)
                for asked in [op, op + 1] {
                    let found = pendingRecords.first(asked) { $0.seq == nil }
                    #expect(found === list.first { $0.op == asked && $0.seq == nil }, "seed \(seed): op \(asked)")
                    if Bool.random(using: &random) { found?.seq = 1 }
                }
            }
        }
    }
}
