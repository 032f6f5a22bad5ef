import ReelCore
import ReelKafka
import Testing

/// Tests how arrivals are gathered into a range, without brokers.
@Suite struct RangeGatheringTests {
    /// Gathers the range 5 ... 9 from records of ten bytes. Returns the kept seqs, the next seq if the range is
    /// complete, and whether it has failed.
    private func gather(bytes: Int = 1_000, _ arrivals: Arrival...) -> (kept: [Seq], next: Seq?, hasFailed: Bool) {
        var range = RangeGathering(next: 5, to: 9, bytes: bytes)
        var kept: [Seq] = []
        var hasFailed = false
        for arrival in arrivals {
            switch range.take(arrival, bytes: 10) {
            case .keep: if case .record(let seq) = arrival { kept.append(seq) }
            case .drop: break
            case .fail: hasFailed = true
            }
        }
        return (kept, range.isComplete ? range.next : nil, hasFailed)
    }

    @Test("the records of the range are kept") func theRecordsOfThe() {
        #expect(gather(.record(4), .record(5), .record(6)) == ([5, 6], nil, false))
        #expect(gather(.record(5), .record(6), .record(7), .record(8), .record(9)) == ([5, 6, 7, 8, 9], 10, false))
        #expect(gather(.record(5), .record(7), .record(12), .record(8)) == ([5, 7], 10, false))
    }

    @Test("it ends where the log does") func itEndsWhereThe() {
        #expect(gather(.record(5), .end(6), .record(6)) == ([5], 6, false))
        #expect(gather(.end(5)) == ([], 5, false))
        #expect(gather(.record(5), .end(20)) == ([5], 10, false))
    }

    @Test("a range read stops at its byte limit after at least one record") func stopsAtByteLimit() {
        #expect(gather(bytes: 1, .record(5), .record(6)) == ([5], 6, false))
        #expect(gather(bytes: 25, .record(5), .record(6), .record(7)) == ([5, 6], 7, false))
        #expect(gather(bytes: 25, .record(6), .record(7), .record(9)) == ([6, 7], 8, false))
    }

    @Test("a batch that is damaged is no hole") func aBatchThatIs() {
        #expect(gather(.error, .record(8), .record(9)) == ([], 5, true))
        #expect(gather(.error, .record(20)) == ([], 5, true))
        #expect(gather(.error, .end(20)) == ([], 5, true))
    }

    @Test("a range read returns the records before damage") func readsBeforeDamage() {
        #expect(gather(.record(5), .record(6), .error, .record(9), .end(20)) == ([5, 6], 7, false))
    }

    @Test("a range read ignores damage after its range") func ignoresLaterDamage() {
        #expect(gather(.record(7), .record(9), .error) == ([7, 9], 10, false))
    }
}
