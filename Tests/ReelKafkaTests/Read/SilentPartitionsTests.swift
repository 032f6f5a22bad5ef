import ReelKafka
import Testing

/// Tests how long readers wait for a partition that does not answer.
@Suite struct SilentPartitionsTests {
    private let long = SilentPartitions.waitMs
    private let short = SilentPartitions.shortWaitMs
    private let silenceMs = SilentPartitions.silenceMs

    @Test("all wait for one that answers") func allWaitForOne() {
        var partitions = SilentPartitions()
        for round in 0..<10 {
            let nowMs = Int64(round) * silenceMs
            #expect(partitions.begin(0, nowMs: nowMs) == long)
            #expect(partitions.begin(0, nowMs: nowMs + 1) == long)
            partitions.end(0, answered: true, nowMs: nowMs + 2)
            partitions.end(0, answered: true, nowMs: nowMs + 3)
        }
    }

    @Test("a slow one that answers now and then is not silent") func aSlowOneThat() {
        var partitions = SilentPartitions()
        for round in 0..<10 {
            #expect(partitions.begin(0, nowMs: Int64(round) * silenceMs) == long)
            if round > 0 { partitions.end(0, answered: true, nowMs: Int64(round) * silenceMs + 1) }
        }
    }

    @Test("one waits for a silent one and not for long") func oneWaitsForA() {
        var partitions = SilentPartitions()
        #expect(partitions.begin(0, nowMs: 0) == long)
        #expect(partitions.begin(0, nowMs: silenceMs) == long)
        #expect(partitions.begin(0, nowMs: silenceMs + 1) == nil)
        #expect(partitions.begin(1, nowMs: silenceMs + 1) == long, "another partition")
        partitions.end(0, answered: false, nowMs: long)
        partitions.end(0, answered: false, nowMs: long)
        #expect(partitions.begin(0, nowMs: long) == short)
        #expect(partitions.begin(0, nowMs: long) == nil)
        partitions.end(0, answered: true, nowMs: long + 1)
        #expect(partitions.begin(0, nowMs: long + 2) == self.long)
    }

    @Test("one that may only be slow is waited for longer each time") func oneThatMayOnly() {
        var partitions = SilentPartitions()
        var nowMs: Int64 = 0
        #expect(partitions.begin(0, nowMs: nowMs) == long)
        for wait in [short, 2 * short, 4 * short, long, long] {
            nowMs += long
            partitions.end(0, answered: false, nowMs: nowMs)
            #expect(partitions.begin(0, nowMs: nowMs) == wait)
        }
        partitions.end(0, answered: false, nowMs: nowMs)
        nowMs += SilentPartitions.memoryMs + 1
        #expect(partitions.begin(0, nowMs: nowMs) == long, "what was said of it is old")
    }
}
