import ReelCore
import ReelNode

extension PublishLedger {
    /// An event that was checked, made canonical and stamped.
    struct Offer: Sendable {
        var site: Site
        var op: Op
        /// The record's value.
        var value: [UInt8]
        /// The reason why the event cannot be accepted; nil: it can. With a reason, `value` does not matter.
        var refusal: ReelError?
    }

    /// Accepts a publish as a whole or not at all.
    ///
    /// - Parameters:
    ///   - offers: The events.
    ///   - stream: The stream.
    ///   - partition: The stream's partition.
    ///   - connection: The number of the connection or request.
    ///   - ref: The `ref` of the publish, as JSON text.
    ///   - isRefused: True if an event without site and op was refused, and with it the whole publish.
    ///   - nowMs: The time in milliseconds.
    ///   - conflict: Returns the seq of a consumed event with the same op and other content; nil: there is none.
    /// - Returns: The records to append, in order, and the answers that are already known.
    mutating func submit(
        _ offers: [Offer],
        to stream: StreamName,
        in partition: Int,
        from connection: Int,
        ref: [UInt8]?,
        isRefused: Bool = false,
        nowMs: Int64,
        conflict: (Offer) -> Seq?
    ) -> (append: [PendingRecord], settled: [Resolution]) {
        var refusals: [Int: ReelError] = [:]
        let closed = refusal(of: offers, partition, connection, nowMs)
        let runs = Self.runs(of: offers, in: stream)
        let mayHaveTwins = zip(offers, offers.dropFirst()).contains { $0.site != $1.site || $0.op >= $1.op }
        var cleared: Set<Site> = []
        var own: [EventKey: Int] = [:]
        for run in runs {
            let pendingRecords = pendingRecords[run.lane]
            for index in run.indices {
                let offer = offers[index]
                if let refusal = offer.refusal {
                    refusals[index] = refusal
                    continue
                }
                let first = nacked.first(run.lane, connection, nowMs: nowMs)
                if let first, offer.op > first, !cleared.contains(offer.site) {
                    refusals[index] = Self.behind(first)
                    continue
                }
                if first == offer.op { cleared.insert(offer.site) }
                if let closed {
                    refusals[index] = closed
                } else if mayHaveTwins,
                    let twin = own.updateValue(index, forKey: EventKey(lane: run.lane, op: offer.op)),
                    PublishedContent.contradict(offer.value, offers[twin].value)
                {
                    refusals[index] = ReelError(
                        .badEvent,
                        "found op \(offer.op) twice with different content",
                        index: index
                    )
                } else if pendingRecords?.contradicts(offer.op, offer.value) == true {
                    refusals[index] = ReelError(
                        .gap,
                        "the same op with other content is on its way into the log",
                        retryMs: 50
                    )
                } else if let seq = conflict(offer) {
                    refusals[index] = ReelError(
                        .conflict,
                        "the same op with other content stands at seq \(seq)",
                        index: index
                    )
                }
            }
        }
        guard isRefused || !refusals.isEmpty else {
            return (take(offers, runs, partition, connection, ref, nowMs), [])
        }
        return ([], refuse(offers, runs, refusals, connection, ref, nowMs))
    }

    /// Adjacent events of one lane. Most often all events of a publish have one site.
    private struct Run {
        var lane: PublisherKey
        var indices: Range<Int>
    }

    private struct EventKey: Hashable {
        var lane: PublisherKey
        var op: Op
    }

    private static func runs(of offers: [Offer], in stream: StreamName) -> [Run] {
        var runs: [Run] = []
        var start = 0
        while start < offers.count {
            let site = offers[start].site
            let end = offers[start...].firstIndex { $0.site != site } ?? offers.count
            runs.append(Run(lane: PublisherKey(stream: stream, site: site), indices: start..<end))
            start = end
        }
        return runs
    }

    /// Returns the reason why no event at all can be accepted now; nil: there is none.
    private func refusal(of offers: [Offer], _ partition: Int, _ connection: Int, _ nowMs: Int64) -> ReelError? {
        if LogState(waitedMs: waitedMs(partition, nowMs: nowMs), settings) == .unavailable {
            return ReelError(
                .logUnavailable,
                "partition \(partition) of the log has not answered for more than \(settings.unavailableMs) ms",
                retryMs: 1_000
            )
        }
        let size = offers.reduce(0) { $0 + PendingRecord.cost(of: $1.value) }
        if byteCount > 0, byteCount + size > byteLimit {
            return ReelError(
                .overloaded,
                "found \(byteCount) bytes of events on their way into the log and \(size) more, expected at most"
                    + " \(byteLimit)",
                retryMs: 200
            )
        }
        if lanes[connection]?.count ?? 0 > Self.lanesPerConnection {
            return ReelError(.overloaded, "one connection publishes for too many sites", retryMs: 1_000)
        }
        return nil
    }

    private mutating func refuse(
        _ offers: [Offer],
        _ runs: [Run],
        _ refusals: [Int: ReelError],
        _ connection: Int,
        _ ref: [UInt8]?,
        _ nowMs: Int64
    ) -> [Resolution] {
        var settled: [Resolution] = []
        for run in runs {
            for index in run.indices {
                let op = offers[index].op
                let error =
                    refusals[index] ?? ReelError(.gap, "another event of the same publish was refused", retryMs: 0)
                // The first copy of a conflicting event was consumed: nothing is missing before later ops.
                if error.code != .conflict { nacked.add(op, run.lane, connection, nowMs: nowMs) }
                settled.append(
                    Resolution(
                        connection: connection,
                        stream: run.lane.stream,
                        ref: ref,
                        site: run.lane.site,
                        op: op,
                        answer: .nacked(error)
                    )
                )
            }
        }
        return settled
    }

    private mutating func take(
        _ offers: [Offer],
        _ runs: [Run],
        _ partition: Int,
        _ connection: Int,
        _ ref: [UInt8]?,
        _ nowMs: Int64
    ) -> [PendingRecord] {
        var pendingRecords: [PendingRecord] = []
        pendingRecords.reserveCapacity(offers.count)
        for run in runs {
            let start = pendingRecords.count
            for offer in offers[run.indices] {
                let record = PendingRecord(
                    run.lane,
                    offer.op,
                    offer.value,
                    partition: partition,
                    connection: connection,
                    takenMs: nowMs
                )
                nacked.taken(offer.op, run.lane, connection)
                pendingRecords.append(record)
            }
            begin(pendingRecords[start...])
            Self.wait(for: pendingRecords[start...], ref, &lanes[connection, default: [:]][run.lane, default: Deque()])
        }
        return pendingRecords
    }

    // Static: a copy of the ledger would make a copy of the queue.
    private static func wait(
        for pendingRecords: ArraySlice<PendingRecord>,
        _ ref: [UInt8]?,
        _ waiting: inout Deque<Waiting>
    ) {
        for record in pendingRecords { waiting.append(Waiting(ref: ref, record: record)) }
    }
}
