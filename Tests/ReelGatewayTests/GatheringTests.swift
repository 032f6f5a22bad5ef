import ReelCore
import ReelLog
import Testing

@testable import ReelGateway

/// What the tail brings goes out at once, or a little later with what follows.
@Suite struct GatheringTests {
    /// No loop can send each event by itself.
    private let tooMuchMs = 1_000.0
    let todo = StreamName("todo")!
    let note = StreamName("note")!
    let site = Site(high: 1, low: 1)

    private func event(_ seq: Seq, _ text: String = "x") -> TailBatch {
        Batches.batch(from: seq, [.event(todo, site, seq, text)])
    }

    @Test func whatFewListenToGoesOutAtOnce() throws {
        var gathering = Gathering(listenerMicros: 30)
        #expect(gathering.dueMs == nil, "nothing is due")
        for seq in 0..<100 as Range<Seq> {
            gathering.add(event(seq), listeners: 33, writeMs: tooMuchMs, nowMs: 0)
            #expect(try #require(gathering.dueMs) <= 0)
            let batch = gathering.take(nowMs: 0)
            #expect(batch?.last == seq)
            #expect(gathering.dueMs == nil)
        }
    }

    @Test func anEventThatComesNowAndThenGoesOutAtOnce() throws {
        var gathering = Gathering(listenerMicros: 30)
        for nowMs in stride(from: 0, to: 300, by: 15) as StrideTo<Int64> {
            gathering.add(event(nowMs / 15), listeners: 100_000, writeMs: tooMuchMs, nowMs: nowMs)
            #expect(try #require(gathering.dueMs) <= nowMs)
            _ = gathering.take(nowMs: nowMs)
        }
    }

    @Test func theMoreListenTheLongerIsGathered() throws {
        for (listeners, distanceMs) in [(34, 1), (100, 3), (400, 12), (500, 15), (100_000, 15)] as [(Int, Int64)] {
            var gathering = Gathering(listenerMicros: 30)
            gathering.add(event(0), listeners: listeners, writeMs: tooMuchMs, nowMs: 1_000)
            _ = gathering.take(nowMs: 1_000)
            for seq in 1...5 as ClosedRange<Seq> {
                gathering.add(event(seq), listeners: seq == 3 ? listeners : 1, writeMs: tooMuchMs, nowMs: 1_000)
                #expect(try #require(gathering.dueMs) <= 0 || seq >= 3)
            }
            #expect(gathering.dueMs == 1_000 + distanceMs)
            let taken = gathering.take(nowMs: 1_000 + distanceMs)
            let batch = try #require(taken)
            #expect(batch.seqs == 1..<6)
            #expect(batch.kinds.count == 5)
        }
    }

    /// A loop that is done with an event in a third of the time until the next one comes has no reason to wait.
    @Test func whatALoopCanSendOneByOneGoesOutAtOnce() throws {
        for (writeMs, times) in [(3.0, 100...100), (4, 50...60)] as [(Double, ClosedRange<Int>)] {
            var gathering = Gathering(listenerMicros: 30)
            var taken = 0
            for seq in 0..<100 as Range<Seq> {
                gathering.add(event(seq), listeners: 1_000, writeMs: writeMs, nowMs: 10 * seq)
                guard try #require(gathering.dueMs) <= 10 * seq else { continue }
                if gathering.take(nowMs: 10 * seq) != nil { taken += 1 }
            }
            #expect(times.contains(taken), "\(taken) times for \(writeMs) ms")
        }
    }

    /// Of a burst only the first few go out alone.
    @Test func aBurstIsSoonFound() throws {
        var gathering = Gathering(listenerMicros: 30)
        var alone = 0
        for nowMs in 0..<100 as Range<Int64> {
            gathering.add(event(nowMs), listeners: 1_000, writeMs: 5, nowMs: nowMs)
            guard try #require(gathering.dueMs) <= nowMs else { continue }
            if gathering.take(nowMs: nowMs)?.kinds.count == 1 { alone += 1 }
        }
        #expect((1...5).contains(alone))
    }

    @Test func asMuchAsAWriteTakesDoesNotWaitForMore() throws {
        var gathering = Gathering(listenerMicros: 30)
        gathering.add(event(0), listeners: 1_000, writeMs: tooMuchMs, nowMs: 1_000)
        _ = gathering.take(nowMs: 1_000)
        let much = event(1, String(repeating: "x", count: 70_000))
        gathering.add(much, listeners: 1_000, writeMs: tooMuchMs, nowMs: 1_000)
        #expect(try #require(gathering.dueMs) <= 1_000)
    }

    @Test func batchesAreJoinedAsIfTheyHadComeTogether() {
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
