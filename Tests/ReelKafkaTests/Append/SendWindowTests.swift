import ReelKafka
import Testing

/// Tests how many records a producer is given at a time, without a producer.
@Suite struct SendWindowTests {
    private var window = SendWindow<Int>()
    private var nowMs: Int64 = 0

    /// Creates a window whose producer is known to the brokers.
    init() {
        _ = window.take(-1, count: 1, nowMs: nowMs)
        _ = window.handedOver()
        _ = window.settled(1, isTaken: true, nowMs: nowMs)
    }

    /// Offers appends of `count` records each, one after the other. Returns those that are handed over.
    private mutating func take(_ appends: Int..., count: Int = 1) -> [Int] {
        appends.flatMap { append in all(window.take(append, count: count, nowMs: nowMs)) }
    }

    private mutating func settled(_ count: Int) -> [Int] {
        all(window.settled(count, isTaken: true, nowMs: nowMs))
    }

    /// Returns the due appends, and those that become due after these are handed over.
    private mutating func all(_ due: [SendWindow<Int>.Run]) -> [Int] {
        due.isEmpty ? [] : due.map(\.append) + all(window.handedOver())
    }

    @Test("records that come while five appends are in flight wait, and then go together")
    mutating func recordsWaitBehindFiveAndGoTogether() {
        #expect(take(0, 1, 2, 3, 4, 5, 6, 7) == [0, 1, 2, 3, 4])
        #expect(settled(1) == [5, 6, 7])
        // Seven records are in flight.
        #expect(take(8) == [])
        #expect(settled(2) == [])
        #expect(settled(1) == [8])
    }

    @Test("an append of any size is sent while less than five are in flight") mutating func anySizeGoesBelowFive() {
        #expect(take(0, count: 4) == [0])
        #expect(take(1, count: 100) == [1])
        #expect(take(2) == [])
        #expect(settled(99) == [])
        #expect(settled(1) == [2])
    }

    @Test("many records do not wait") mutating func manyDoNotWait() {
        #expect(take(0, count: 5) == [0])
        #expect(take(1, 2, count: 60) == [])
        #expect(take(3, count: 8) == [1, 2, 3])
        #expect(take(4) == [])
    }

    @Test("later records stay behind those that are being handed over") mutating func orderIsKept() {
        #expect(window.take(0, count: 1, nowMs: nowMs).map(\.append) == [0])
        #expect(window.take(1, count: 1, nowMs: nowMs).isEmpty)
        #expect(window.settled(1, isTaken: true, nowMs: nowMs).isEmpty)
        #expect(window.handedOver().map(\.append) == [1])
        #expect(window.take(2, count: 200, nowMs: nowMs).isEmpty)
        #expect(window.handedOver().map(\.append) == [2])
        #expect(window.handedOver().isEmpty)
    }

    @Test("an abandoned record is never due") mutating func abandonedIsNeverDue() {
        #expect(take(0, count: 5) == [0])
        #expect(take(1, count: 127) == [])
        #expect(window.giveUp().map(\.append) == [1])
        #expect(take(2) == [])
        #expect(settled(5) == [2])
    }

    // MARK: A producer that the brokers do not know

    /// Returns the appends and the ranges of their records that are handed over now.
    private func words(_ due: [SendWindow<Int>.Run]) -> [String] {
        due.map { "\($0.append): \($0.records)" }
    }

    @Test("the first record of a producer goes alone") mutating func firstGoesAlone() {
        window.renew()
        #expect(words(window.take(0, count: 3, nowMs: nowMs)) == ["0: 0..<1"])
        #expect(words(window.handedOver()) == [])
        #expect(words(window.take(1, count: 200, nowMs: nowMs)) == [])
        #expect(words(window.settled(1, isTaken: true, nowMs: nowMs)) == ["0: 1..<3", "1: 0..<200"])
        #expect(words(window.handedOver()) == [])
        #expect(words(window.settled(202, isTaken: true, nowMs: nowMs)) == [])
        #expect(words(window.take(2, count: 2, nowMs: nowMs)) == ["2: 0..<2"])
    }

    @Test("records that wait behind a failed first record fail too") mutating func failsWithTheFirst() {
        window.renew()
        #expect(words(window.take(0, count: 1, nowMs: nowMs)) == ["0: 0..<1"])
        #expect(words(window.handedOver()) == [])
        #expect(words(window.take(1, count: 2, nowMs: nowMs)) == [])
        #expect(words(window.giveUpUnlessKnown()) == ["1: 0..<2"])
        #expect(words(window.settled(1, isTaken: false, nowMs: nowMs)) == [])
        #expect(words(window.take(2, count: 2, nowMs: nowMs)) == ["2: 0..<1"], "alone again")
        #expect(words(window.handedOver()) == [])
        #expect(words(window.settled(1, isTaken: true, nowMs: nowMs)) == ["2: 1..<2"])
        #expect(words(window.handedOver()) == [])
        #expect(words(window.take(3, count: 9, nowMs: nowMs)) == ["3: 0..<9"])
        #expect(words(window.handedOver()) == [])
        #expect(words(window.take(4, count: 1, nowMs: nowMs)) == [])
        #expect(words(window.giveUpUnlessKnown()) == [], "one has been taken before")
        #expect(words(window.settled(10, isTaken: false, nowMs: nowMs)) == ["4: 0..<1"])
    }

    @Test("a producer that has sent nothing for a long time is forgotten") mutating func idleIsForgotten() {
        #expect(words(window.take(0, count: 2, nowMs: nowMs)) == ["0: 0..<2"])
        #expect(words(window.handedOver()) == [])
        nowMs = 600_001
        #expect(words(window.take(1, count: 2, nowMs: nowMs)) == ["1: 0..<2"], "something is under way")
        #expect(words(window.handedOver()) == [])
        #expect(words(window.settled(4, isTaken: true, nowMs: nowMs)) == [])
        nowMs += 600_000
        #expect(words(window.take(2, count: 2, nowMs: nowMs)) == ["2: 0..<2"])
        #expect(words(window.handedOver()) == [])
        #expect(words(window.settled(2, isTaken: true, nowMs: nowMs)) == [])
        nowMs += 600_001
        #expect(words(window.take(3, count: 2, nowMs: nowMs)) == ["3: 0..<1"])
    }
}
