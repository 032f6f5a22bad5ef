import ReelKafka
import Testing

/// What a producer is given at a time, without one.
@Suite struct SendWindowTests {
    @Test func atMostFiveRecordsAreUnderWayAndTheRestComesInOrder() {
        var window = SendWindow<Int>()
        let isDue = (0...6).map { window.take($0, count: 1) }
        #expect(isDue == [true, true, true, true, true, false, false])
        #expect(window.due() == [])
        window.settled(1)
        #expect(window.due() == [5])
        window.handedOver()
        #expect(window.due() == [])
    }

    @Test func whereNothingIsUnderWayAllThatWaitsIsDue() {
        var window = SendWindow<Int>()
        #expect(window.take(0, count: 1_000) == true)
        let isDue = (1...3).map { window.take($0, count: 700) }
        #expect(isDue == [false, false, false])
        window.settled(999)
        #expect(window.due() == [])
        window.settled(1)
        #expect(window.due() == [1, 2, 3])
        window.handedOver()
        window.settled(2_099)
        // One is under way.
        #expect(window.take(4, count: 4) == true)
        #expect(window.take(5, count: 1) == false)
    }

    @Test func whatComesStaysBehindWhatWaitsOrIsBeingHandedOver() {
        var window = SendWindow<Int>()
        #expect(window.take(0, count: 5) == true)
        #expect(window.take(1, count: 2) == false)
        #expect(window.take(2, count: 1) == false)
        window.settled(4)
        #expect(window.due() == [1, 2])
        #expect(window.take(3, count: 1) == false)
        window.settled(4)
        #expect(window.due() == [])
        window.handedOver()
        #expect(window.due() == [3])
        window.handedOver()
        #expect(window.take(4, count: 1) == true)
    }

    @Test func whatWasGivenUpIsNeverDue() {
        var window = SendWindow<Int>()
        #expect(window.take(0, count: 5) == true)
        #expect(window.take(1, count: 1) == false)
        #expect(window.giveUp() == [1])
        window.settled(5)
        #expect(window.due() == [])
        #expect(window.take(2, count: 1) == true)
    }
}
