/// The records of one partition that were given to librdkafka, and those that wait. Pure.
///
/// The first record of a producer is sent alone. A broker that does not know a producer accepts any of its requests as
/// the first one. If it refuses the first request and accepts the second, librdkafka believes that both are in the log,
/// although the first one is lost. Once a broker has accepted a request, it refuses requests that are out of order.
/// That holds until it forgets the producer after a long time without requests.
///
/// An idempotent producer sends no further request to a partition while five or more of its records are in flight. If
/// other records wait for that, librdkafka's thread polls and uses a whole core. So a few records wait here, and then
/// go together. Many records do not wait: continuous requests justify that core.
package struct SendWindow<Append> {
    /// Consecutive records of one append that are produced together.
    package struct Run {
        package let append: Append
        package let records: Range<Int>
    }

    private var underWay = 0
    private var waiting: [Run] = []
    private var waitingRecords = 0
    /// When the brokers last accepted a record; nil: they do not know the producer.
    private var takenMs: Int64?
    /// True while a thread produces records: new ones must wait, to keep the order.
    private var isHandingOver = false

    /// The number of records in flight at which no more are sent.
    private static var inFlightMax: Int { 5 }
    /// The number of waiting records at which they are sent in any case.
    private static var waitingMax: Int { 128 }
    /// How long brokers certainly remember a producer, in milliseconds: by default they forget it after a day.
    private static var knownMs: Int64 { 600_000 }

    package init() {}

    /// Adds an append. Returns the records to produce now, in order; the caller then calls `handedOver`.
    ///
    /// - Parameters:
    ///   - append: The append, as the returned runs name it.
    ///   - count: The number of its records.
    ///   - nowMs: The present time in milliseconds.
    package mutating func take(_ append: Append, count: Int, nowMs: Int64) -> [Run] {
        if underWay == 0, let takenMs, nowMs - takenMs > Self.knownMs { renew() }
        waiting.append(Run(append: append, records: 0..<count))
        waitingRecords += count
        return due()
    }

    /// Takes the results of records in flight. Returns the records to produce now; the caller then calls `handedOver`.
    ///
    /// - Parameters:
    ///   - count: The number of records with a result.
    ///   - isTaken: True if the brokers have accepted at least one of them.
    ///   - nowMs: The present time.
    package mutating func settled(_ count: Int, isTaken: Bool, nowMs: Int64) -> [Run] {
        underWay -= count
        if isTaken { takenMs = nowMs }
        return due()
    }

    /// Called when the returned records were produced. Returns the next records to produce; the caller repeats this
    /// until there are none.
    package mutating func handedOver() -> [Run] {
        isHandingOver = false
        return due()
    }

    /// Removes and returns all waiting records. They will not be produced.
    package mutating func giveUp() -> [Run] {
        defer { (waiting, waitingRecords) = ([], 0) }
        return waiting
    }

    /// Removes and returns all waiting records if the producer's first record has failed. They would most likely fail
    /// as well, one after the other.
    package mutating func giveUpUnlessKnown() -> [Run] {
        takenMs == nil ? giveUp() : []
    }

    /// Starts with another producer.
    package mutating func renew() {
        takenMs = nil
    }

    private mutating func due() -> [Run] {
        guard !isHandingOver, !waiting.isEmpty else { return [] }
        guard takenMs != nil else { return first() }
        guard underWay < Self.inFlightMax || waitingRecords >= Self.waitingMax else { return [] }
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

extension SendWindow.Run: Sendable where Append: Sendable {}
