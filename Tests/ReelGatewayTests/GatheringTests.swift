import ReelCore
import ReelLog
import Testing

@testable import ReelGateway

/// What the tail brings goes out at once, or a little later with what follows.
@Suite struct GatheringTests {
    let todo = StreamName("todo")!
    let note = StreamName("note")!
    let site = Site(high: 1, low: 1)

    private func event(_ seq: Seq, _ text: String = "x") -> TailBatch {
        Batches.batch(from: seq, [.event(todo, site, seq, text)])
    }

    @Test func whatFewListenToGoesOutAtOnce() throws {
        var gathering = Gathering(listenersMin: 64)
        #expect(gathering.dueMs == nil, "nothing is due")
        for seq in 0..<100 as Range<Seq> {
            gathering.add(event(seq), listeners: 63)
            #expect(try #require(gathering.dueMs) <= 0)
            let batch = gathering.take(nowMs: 0)
            #expect(batch?.last == seq)
            #expect(gathering.dueMs == nil)
        }
    }

    @Test func anEventThatComesNowAndThenGoesOutAtOnce() throws {
        var gathering = Gathering(listenersMin: 64)
        for nowMs in stride(from: 0, to: 100, by: 5) as StrideTo<Int64> {
            gathering.add(event(nowMs / 5), listeners: 64)
            #expect(try #require(gathering.dueMs) <= nowMs)
            _ = gathering.take(nowMs: nowMs)
        }
    }

    @Test func whatComesFastToManyIsGathered() throws {
        var gathering = Gathering(listenersMin: 64)
        gathering.add(event(0), listeners: 64)
        _ = gathering.take(nowMs: 1_000)
        var due: [Int64] = []
        for seq in 1...5 as ClosedRange<Seq> {
            gathering.add(event(seq), listeners: 64)
            due.append(gathering.dueMs ?? -1)
        }
        #expect(due == [1_005, 1_010, 1_015, 1_015, 1_015], "never longer than 15 ms after the last ones")
        let taken = gathering.take(nowMs: 1_015)
        let batch = try #require(taken)
        #expect(batch.seqs == 1..<6)
        #expect(batch.kinds.count == 5)
        gathering.add(event(6, String(repeating: "x", count: 70_000)), listeners: 64)
        #expect(try #require(gathering.dueMs) <= 1_015, "as much as a write takes does not wait for more")
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
