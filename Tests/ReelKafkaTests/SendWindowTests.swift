import ReelKafka
import Testing

/// What a producer is given at a time, without one.
@Suite struct SendWindowTests {
    private var window = SendWindow<Int>()

    /// What is handed over of appends that come one after the other, each of so many records.
    private mutating func take(_ appends: Int..., count: Int = 1) -> [Int] {
        appends.flatMap { append in
            let due = window.take(append, count: count)
            return due.isEmpty ? [] : due + handedOver()
        }
    }

    private mutating func settled(_ count: Int) -> [Int] {
        let due = window.settled(count)
        return due.isEmpty ? [] : due + handedOver()
    }

    private mutating func handedOver() -> [Int] {
        let due = window.handedOver()
        return due.isEmpty ? [] : due + handedOver()
    }

    @Test mutating func whatComesWithFiveUnderWayWaitsAndThenGoesTogether() {
        #expect(take(0, 1, 2, 3, 4, 5, 6, 7) == [0, 1, 2, 3, 4])
        #expect(settled(1) == [5, 6, 7])
        // Seven are under way.
        #expect(take(8) == [])
        #expect(settled(2) == [])
        #expect(settled(1) == [8])
    }

    @Test mutating func anAppendOfAnySizeGoesWhereLessThanFiveAreUnderWay() {
        #expect(take(0, count: 4) == [0])
        #expect(take(1, count: 100) == [1])
        #expect(take(2) == [])
        #expect(settled(99) == [])
        #expect(settled(1) == [2])
    }

    @Test mutating func aCrowdDoesNotWait() {
        #expect(take(0, count: 5) == [0])
        #expect(take(1, 2, count: 60) == [])
        #expect(take(3, count: 8) == [1, 2, 3])
        #expect(take(4) == [])
    }

    @Test mutating func whatComesStaysBehindWhatIsBeingHandedOver() {
        #expect(window.take(0, count: 1) == [0])
        #expect(window.take(1, count: 1) == [])
        #expect(window.settled(1) == [])
        #expect(window.handedOver() == [1])
        #expect(window.take(2, count: 200) == [])
        #expect(window.handedOver() == [2])
        #expect(window.handedOver() == [])
    }

    @Test mutating func whatWasGivenUpIsNeverDue() {
        #expect(take(0, count: 5) == [0])
        #expect(take(1, count: 127) == [])
        #expect(window.giveUp() == [1])
        #expect(take(2) == [])
        #expect(settled(5) == [2])
    }
}
