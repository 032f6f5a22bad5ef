/// What librdkafka is given of one partition, and what waits for its turn before it. Without effects.
///
/// An idempotent producer begins no request to a partition of which five records are under way, and while more of them
/// wait for that, its thread asks again and again with a whole core. So they wait here: librdkafka is given what it can
/// send at once.
package struct SendWindow<Append> {
    private var underWay = 0
    private var waiting: [(append: Append, count: Int)] = []
    /// What waited is being handed over: whatever comes now stays behind it.
    private var isHandingOver = false

    private static var most: Int { 5 }

    package init() {}

    /// An append of so many records comes. True: it is to be handed over now; false: it waits.
    package mutating func take(_ append: Append, count: Int) -> Bool {
        guard waiting.isEmpty, !isHandingOver, fits(count) else {
            waiting.append((append, count))
            return false
        }
        underWay += count
        return true
    }

    /// The fate of so many records is known.
    package mutating func settled(_ count: Int) {
        underWay -= count
    }

    /// What is to be handed over by now, in order; `handedOver` is called behind it.
    package mutating func due() -> [Append] {
        guard !isHandingOver, !waiting.isEmpty else { return [] }
        var count = 0
        if underWay == 0 {
            count = waiting.count
            underWay = waiting.reduce(0) { $0 + $1.count }
        } else {
            while count < waiting.count, fits(waiting[count].count) {
                underWay += waiting[count].count
                count += 1
            }
        }
        defer { waiting.removeFirst(count) }
        isHandingOver = count > 0
        return waiting[..<count].map(\.append)
    }

    package mutating func handedOver() {
        isHandingOver = false
    }

    /// What will not be handed over any more.
    package mutating func giveUp() -> [Append] {
        defer { waiting = [] }
        return waiting.map(\.append)
    }

    private func fits(_ count: Int) -> Bool { underWay == 0 || underWay + count <= Self.most }
}
