import ReelCore
import ReelKafka
import ReelLog
import Testing

/// Tests the reactions of a tail to arrivals, without brokers.
@Suite struct TailPlaceTests {
    private let last = Witness(seq: 6, hash: 60)
    private var place: TailPlace { TailPlace(next: 7, last: last, troubles: 0) }

    /// Returns the step for each arrival. The hash of a record is ten times its seq, plus 1 if `another` is true.
    private func steps(
        _ place: inout TailPlace,
        _ arrivals: Arrival...,
        troubles: Int = 0,
        another: Bool = false
    )
        -> [TailPlace.Step]
    {
        arrivals.map { arrival in
            place.take(arrival, troubles: troubles) {
                guard case .record(let seq) = arrival else { return 0 }
                return UInt64(seq) * 10 + (another ? 1 : 0)
            }
        }
    }

    @Test("the next record and the end are plain") func theNextRecordAnd() {
        var place = place
        #expect(steps(&place, .record(7), .end(7), .end(5)) == [.deliver, .proceed, .proceed])
    }

    @Test("anything else is a doubt") func anythingElseIsA() {
        var place = place
        #expect(steps(&place, .record(8), .record(6), .end(8), .error) == [.doubt, .doubt, .doubt, .doubt])
    }

    @Test("a tail reads its last record again after trouble") func rechecksAfterTrouble() {
        var place = place
        #expect(steps(&place, .record(7), .end(7), troubles: 1) == [.check, .check])
        place.recheck(troubles: 1)
        #expect(steps(&place, .record(6), .record(7), troubles: 1) == [.proceed, .deliver])
    }

    @Test("another record at the last seq is a doubt") func anotherRecordAtThe() {
        var place = place
        place.recheck(troubles: 1)
        #expect(steps(&place, .record(6), troubles: 1, another: true) == [.doubt])
    }

    @Test("a tail raises a doubt when a recheck returns anything but its last record") func recheckRaisesDoubt() {
        for arrival in [.record(5), .record(7), .end(6), .end(7), .error] as [Arrival] {
            var place = place
            place.recheck(troubles: 1)
            #expect(steps(&place, arrival, troubles: 1) == [.doubt])
        }
    }

    @Test("a tail starts a recheck again when trouble occurs during it") func restartsRecheck() {
        var place = place
        place.recheck(troubles: 1)
        #expect(steps(&place, .record(6), troubles: 2) == [.check])
        place.recheck(troubles: 2)
        #expect(steps(&place, .record(7), troubles: 2) == [.doubt])
    }

    @Test("a tail checks trouble that occurs during a doubt once the doubt is settled") func rechecksAfterDoubt() {
        for troubles in [3, 4] {
            var place = place
            place.doubt(troubles: 3)
            place.settle(next: 9, last: Witness(seq: 8, hash: 80))
            #expect(steps(&place, .record(9), troubles: troubles) == [troubles == 3 ? .deliver : .check])
        }
    }

    @Test("nothing read yet is nothing to read again") func nothingReadYetIs() {
        var place = TailPlace(next: 0, last: nil, troubles: 0)
        #expect(steps(&place, .record(0), troubles: 0) == [.deliver])
        place.recheck(troubles: 1)
        #expect(steps(&place, .record(0), troubles: 1) == [.doubt])
    }
}
