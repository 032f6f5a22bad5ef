import ReelCore
import ReelLog
import Testing

@testable import ReelGateway

/// Tests whether the gateway sends an event from the tail immediately, or later together with the next ones.
@Suite struct DeliveryCoalescerTests {
    let todo = StreamName("todo")!
    let note = StreamName("note")!
    let site = Site(high: 1, low: 1)

    private func event(_ seq: Seq, _ text: String = "x") -> TailBatch {
        Batches.batch(from: seq, [.event(todo, site, seq, text)])
    }

    @Test("the coalescer sends an event with few listeners immediately") func sendsToFewImmediately() throws {
        var gathering = DeliveryCoalescer(listenerMicros: 30)
        #expect(gathering.dueMs == nil, "nothing is due")
        for seq in 0..<100 as Range<Seq> {
            gathering.add(event(seq), listeners: 33, keepsDistance: true)
            #expect(try #require(gathering.dueMs) <= 0)
            let batch = gathering.take(nowMs: 0)
            #expect(batch?.last == seq)
            #expect(gathering.dueMs == nil)
        }
    }

    @Test("an event that comes now and then goes out at once") func anEventThatComes() throws {
        var gathering = DeliveryCoalescer(listenerMicros: 30)
        for nowMs in stride(from: 0, to: 300, by: 15) as StrideTo<Int64> {
            gathering.add(event(nowMs / 15), listeners: 100_000, keepsDistance: true)
            #expect(try #require(gathering.dueMs) <= nowMs)
            _ = gathering.take(nowMs: nowMs)
        }
    }

    @Test("the more listen the longer is gathered") func theMoreListenThe() throws {
        for (listeners, distanceMs) in [(34, 1), (100, 3), (400, 12), (500, 15), (100_000, 15)] as [(Int, Int64)] {
            var gathering = DeliveryCoalescer(listenerMicros: 30)
            gathering.add(event(0), listeners: listeners, keepsDistance: true)
            _ = gathering.take(nowMs: 1_000)
            for seq in 1...5 as ClosedRange<Seq> {
                gathering.add(event(seq), listeners: seq == 3 ? listeners : 1, keepsDistance: true)
                #expect(try #require(gathering.dueMs) <= 0 || seq >= 3)
            }
            #expect(gathering.dueMs == 1_000 + distanceMs)
            let taken = gathering.take(nowMs: 1_000 + distanceMs)
            let batch = try #require(taken)
            #expect(batch.seqs == 1..<6)
            #expect(batch.kinds.count == 5)
        }
    }

    @Test("the coalescer sends an event that keeps no distance immediately") func sendsWithoutDistance() throws {
        var gathering = DeliveryCoalescer(listenerMicros: 30)
        for seq in 0..<10 as Range<Seq> {
            gathering.add(event(seq), listeners: 1_000, keepsDistance: false)
            #expect(try #require(gathering.dueMs) <= 1_000)
            _ = gathering.take(nowMs: 1_000)
        }
        gathering.add(event(10), listeners: 1_000, keepsDistance: true)
        #expect(gathering.dueMs == 1_015, "behind the last one, which kept none")
        gathering.add(event(11), listeners: 1_000, keepsDistance: false)
        #expect(gathering.dueMs == 1_015, "nothing goes out before what came sooner")
    }

    /// A loop that handles an event in half of the time until the next event has no reason to wait.
    @Test("the load estimate reports overload only when sends take over half of the loop's time", arguments: [1, 2, 4])
    func estimatesSendLoad(partitions: Int) {
        for (writeMs, context) in [(4.5, 0...0), (6, 0.5...1)] as [(Double, ClosedRange<Double>)] {
            var load = SendLoadEstimate()
            var times = 0
            for nowMs in stride(from: 0, to: 10_000, by: 10) as StrideTo<Int64> {
                for _ in 0..<partitions { load.add(writeMs / Double(partitions), nowMs: nowMs) }
                if load.isTooMuch { times += 1 }
            }
            #expect(context.contains(Double(times) / 1_000), "\(times) of 1000 times for \(writeMs) ms")
        }
    }

    @Test("a burst is found at once and soon forgotten") func aBurstIsFound() {
        var load = SendLoadEstimate()
        let alone = (0..<100 as Range<Int64>).prefix { nowMs in
            load.add(5, nowMs: nowMs)
            return !load.isTooMuch
        }
        #expect(alone.count == 2)
        for nowMs in 100..<200 as Range<Int64> { load.add(5, nowMs: nowMs) }
        load.add(5, nowMs: 240)
        #expect(!load.isTooMuch)
    }

    @Test("as much as a write takes does not wait for more") func asMuchAsA() throws {
        var gathering = DeliveryCoalescer(listenerMicros: 30)
        gathering.add(event(0), listeners: 1_000, keepsDistance: true)
        _ = gathering.take(nowMs: 1_000)
        let much = event(1, String(repeating: "x", count: 70_000))
        gathering.add(much, listeners: 1_000, keepsDistance: true)
        #expect(try #require(gathering.dueMs) <= 1_000)
    }

    @Test("batches are joined as if they had come together") func batchesAreJoinedAs() {
        let (first, second) =
            (
                [.event(note, site, 0, "a"), .hole, .event(todo, site, 0, "b")],
                [.event(todo, site, 1, "c"), .barrier, .void, .event(note, site, 1, "d")]
            ) as ([Batches.Record], [Batches.Record])
        let whole = Batches.batch(from: 7, first + second)
        let joined = TailBatch(joining: [Batches.batch(from: 7, first), Batches.batch(from: 10, second)])
        #expect(joined.seqs == whole.seqs)
        #expect(joined.kinds == whole.kinds)
        #expect(joined.streams == whole.streams)
        #expect(joined.places == whole.places)
        #expect(joined.hasBarriers)
        #expect(joined.witness == whole.witness)
        for index in whole.kinds.indices {
            #expect(joined[index].entry.seq == whole[index].entry.seq)
            #expect(joined.withValue(joined[index]) { Array($0) } == whole.withValue(whole[index]) { Array($0) })
        }
    }
}
