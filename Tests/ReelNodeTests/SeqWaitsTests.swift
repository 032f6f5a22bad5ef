import ReelNode
import TestSupport
import Testing

/// Compares the waits for a seq with a list that is searched from end to end.
@Suite struct SeqWaitsTests {
    @Test("a wait ends with its seq or its deadline whatever comes first") func aWaitEndsWith() {
        var waits = SeqWaits<String>()
        waits.add("b", for: 7, untilMs: 100)
        waits.add("a", for: 5, untilMs: 300)
        let late = waits.add("c", for: 9, untilMs: 50)
        #expect(waits.reached(4).isEmpty)
        #expect(waits.due(nowMs: 50) == ["c"])
        #expect(waits.cancel(late) == nil)
        #expect(waits.reached(7) == ["a", "b"])
        #expect(waits.isEmpty)
        #expect(waits.due(nowMs: 1_000).isEmpty)
    }

    @Test("a thousand random waits end as in a list") func aThousandRandomWaits() {
        var random = SeededNumbers(TestSeed.value)
        var waits = SeqWaits<Int>()
        var list: [(name: Int, seq: Int64, untilMs: Int64, ticket: SeqWaits<Int>.Ticket)] = []
        for name in 0..<1_000 {
            let (seq, untilMs) = (Int64.random(in: 0..<100, using: &random), Int64.random(in: 0..<100, using: &random))
            list.append((name, seq, untilMs, waits.add(name, for: seq, untilMs: untilMs)))
            let ended: [Int]
            let isOver: (Int) -> Bool
            switch Int.random(in: 0..<20, using: &random) {
            case 0:
                let seq = Int64.random(in: 0..<60, using: &random)
                ended = waits.reached(seq)
                isOver = { list[$0].seq <= seq }
            case 1:
                let nowMs = Int64.random(in: 0..<60, using: &random)
                ended = waits.due(nowMs: nowMs)
                isOver = { list[$0].untilMs <= nowMs }
            case 2..<8:
                let index = Int.random(in: list.indices, using: &random)
                ended = waits.cancel(list[index].ticket).map { [$0] } ?? []
                isOver = { $0 == index }
            default: continue
            }
            let expected = list.indices.filter(isOver).map { list[$0].name }
            #expect(Set(ended) == Set(expected) && ended.count == expected.count)
            list.removeAll { expected.contains($0.name) }
            #expect(waits.count == list.count)
        }
        #expect(waits.removeAll() == list.map(\.name))
        #expect(waits.isEmpty)
    }
}
