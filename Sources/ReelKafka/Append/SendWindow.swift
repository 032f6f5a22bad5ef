/// What librdkafka is given of one partition, and what waits for its turn before it. Without effects.
///
/// The first record of a producer goes alone. A broker that does not know a producer takes any of its requests for the
/// first one. Where it refuses the first and takes the second, librdkafka believes both to be in the log, though the
/// first one is lost. Once it has taken one, it refuses what comes out of order, until it forgets a producer of which
/// it has had nothing for long.
///
/// An idempotent producer begins no request to a partition while five of its records or more are under way, and where
/// others wait for that, its thread asks again and again with a whole core. So a few wait here, and then go together. A
/// crowd does not: whose requests follow each other without a pause earns that core.
package struct SendWindow<Append> {
    /// Records of one append that are handed over together.
    package struct Run {
        package let append: Append
        package let records: Range<Int>
    }

    private var underWay = 0
    private var waiting: [Run] = []
    private var waitingRecords = 0
    /// When the brokers have last taken something; nil: they do not know the producer.
    private var takenMs: Int64?
    /// Somebody hands runs over: whatever comes now stays behind them.
    private var isHandingOver = false

    /// With so many records under way, nothing more is sent.
    private static var most: Int { 5 }
    /// So many records do not wait.
    private static var crowd: Int { 128 }
    /// So long brokers do know a producer: they forget it behind a day, unless told otherwise.
    private static var knownMs: Int64 { 600_000 }

    package init() {}

    /// An append of so many records comes. What is to be handed over now, in order; behind that, `handedOver`.
    package mutating func take(_ append: Append, count: Int, nowMs: Int64) -> [Run] {
        if underWay == 0, let takenMs, nowMs - takenMs > Self.knownMs { renew() }
        waiting.append(Run(append: append, records: 0..<count))
        waitingRecords += count
        return due()
    }

    /// The fate of so many records is known; `isTaken`: the brokers have taken some of them. What is to be handed over
    /// now; behind that, `handedOver`.
    package mutating func settled(_ count: Int, isTaken: Bool, nowMs: Int64) -> [Run] {
        underWay -= count
        if isTaken { takenMs = nowMs }
        return due()
    }

    /// What was due is handed over. What is to be handed over next, until it is nothing.
    package mutating func handedOver() -> [Run] {
        isHandingOver = false
        return due()
    }

    /// What will not be handed over any more.
    package mutating func giveUp() -> [Run] {
        defer { (waiting, waitingRecords) = ([], 0) }
        return waiting
    }

    /// Nothing was taken. What will not be handed over any more, where that was a producer's first record: what waits
    /// would most likely fail, too, one record after the other.
    package mutating func giveUpUnlessKnown() -> [Run] {
        takenMs == nil ? giveUp() : []
    }

    /// Another producer comes.
    package mutating func renew() {
        takenMs = nil
    }

    private mutating func due() -> [Run] {
        guard !isHandingOver, !waiting.isEmpty else { return [] }
        guard takenMs != nil else { return first() }
        guard underWay < Self.most || waitingRecords >= Self.crowd else { return [] }
        isHandingOver = true
        underWay += waitingRecords
        return giveUp()
    }

    private mutating func first() -> [Run] {
        guard underWay == 0 else { return [] }
        isHandingOver = true
        underWay = 1
        waitingRecords -= 1
        let (append, records) = (waiting[0].append, waiting[0].records)
        let rest = records.dropFirst()
        if rest.isEmpty { waiting.removeFirst() } else { waiting[0] = Run(append: append, records: rest) }
        return [Run(append: append, records: records.prefix(1))]
    }
}
