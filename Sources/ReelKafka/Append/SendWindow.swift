/// What librdkafka is given of one partition, and what waits for its turn before it. Without effects.
///
/// An idempotent producer begins no request to a partition while five of its records or more are under way, and where
/// others wait for that, its thread asks again and again with a whole core. So a few wait here, and then go together. A
/// crowd does not: whose requests follow each other without a pause earns that core.
package struct SendWindow<Append> {
    private var underWay = 0
    private var waiting: [Append] = []
    private var waitingRecords = 0
    /// Somebody hands appends over: whatever comes now stays behind them.
    private var isHandingOver = false

    /// With so many records under way, nothing more is sent.
    private static var most: Int { 5 }
    /// So many records do not wait.
    private static var crowd: Int { 128 }

    package init() {}

    /// An append of so many records comes. What is to be handed over now, in order; behind that, `handedOver`.
    package mutating func take(_ append: Append, count: Int) -> [Append] {
        waiting.append(append)
        waitingRecords += count
        return due()
    }

    /// The fate of so many records is known. What is to be handed over now; behind that, `handedOver`.
    package mutating func settled(_ count: Int) -> [Append] {
        underWay -= count
        return due()
    }

    /// What was due is handed over. What is to be handed over next, until it is nothing.
    package mutating func handedOver() -> [Append] {
        isHandingOver = false
        return due()
    }

    /// What will not be handed over any more.
    package mutating func giveUp() -> [Append] {
        defer { (waiting, waitingRecords) = ([], 0) }
        return waiting
    }

    private mutating func due() -> [Append] {
        guard !isHandingOver, !waiting.isEmpty, underWay < Self.most || waitingRecords >= Self.crowd else { return [] }
        isHandingOver = true
        underWay += waitingRecords
        return giveUp()
    }
}
