import ReelClient

/// An action at a point in virtual time, unless it is cancelled before.
final class Happening: TransportHandle {
    fileprivate let moment: VirtualTime.Moment
    fileprivate var body: (() -> Void)?

    fileprivate init(_ moment: VirtualTime.Moment, _ body: @escaping () -> Void) {
        self.moment = moment
        self.body = body
    }

    func cancel() { body = nil }
}

/// A clock that jumps from one action to the next.
///
/// Actions of the same millisecond run in the order of their lanes, and within a lane in the order of their requests.
/// So the order of one party's requests does not affect another party.
final class VirtualTime {
    struct Moment: Comparable {
        var ms: Int64
        var lane: Int
        var number: Int

        static func < (a: Moment, b: Moment) -> Bool { (a.ms, a.lane, a.number) < (b.ms, b.lane, b.number) }
    }

    private(set) var nowMs: Int64 = 0
    /// A binary heap: each action is before the two children at twice its index, plus one and plus two.
    private var queue: [Happening] = []
    /// The number of requests of each lane.
    private var numbers: [Int] = []

    func addLane() -> Int {
        numbers.append(0)
        return numbers.count - 1
    }

    @discardableResult
    func at(_ ms: Int64, _ lane: Int, _ body: @escaping () -> Void) -> Happening {
        numbers[lane] += 1
        let happening = Happening(Moment(ms: max(ms, nowMs), lane: lane, number: numbers[lane]), body)
        queue.append(happening)
        var index = queue.count - 1
        while index > 0, queue[index].moment < queue[(index - 1) / 2].moment {
            queue.swapAt(index, (index - 1) / 2)
            index = (index - 1) / 2
        }
        return happening
    }

    /// Runs all actions up to this time.
    func run(until ms: Int64) {
        while let next = queue.first, next.moment.ms <= ms {
            popFirst()
            nowMs = next.moment.ms
            let body = next.body
            next.body = nil
            body?()
        }
        nowMs = max(nowMs, ms)
    }

    private func popFirst() {
        queue.swapAt(0, queue.count - 1)
        queue.removeLast()
        var index = 0
        while true {
            var least = index
            for child in [2 * index + 1, 2 * index + 2]
            where child < queue.count && queue[child].moment < queue[least].moment { least = child }
            if least == index { return }
            queue.swapAt(index, least)
            index = least
        }
    }

    /// Drops all remaining actions.
    func stop() {
        // An action that repeats itself refers to itself.
        for happening in queue { happening.cancel() }
        queue = []
    }
}
