import ReelCore

extension PublishLedger {
    /// An event that was checked, made canonical and stamped.
    struct Offer {
        var site: Site
        var op: Op
        /// The record's value.
        var value: [UInt8]
        /// Why it cannot be taken; `value` does not matter then.
        var refusal: ReelError?
    }

    /// Takes a publish whole or not at all. What is to be appended comes back in order; what can be answered already
    /// is answered. `conflict` finds the seq of an event of the same op that was consumed and says something else.
    mutating func offer(
        _ offers: [Offer],
        to stream: StreamName,
        in partition: Int,
        from connection: Int,
        ref: [UInt8]?,
        isRefused: Bool = false,
        nowMs: Int64,
        conflict: (Offer) -> Seq?
    ) -> (append: [Flight], settled: [Settled]) {
        var refusals: [ReelError?] = offers.map(\.refusal)
        let closed = refusal(of: offers, partition, connection, nowMs)
        let lanes = Self.lanes(of: offers, in: stream)
        let mayHaveTwins = zip(offers, offers.dropFirst()).contains { $0.site != $1.site || $0.op >= $1.op }
        var cleared: Set<Site> = []
        var own: [EventKey: Int] = [:]
        for (index, offer) in offers.enumerated() where refusals[index] == nil {
            let lane = lanes[index]
            let key = EventKey(lane: lane, op: offer.op)
            let first = nacked.first(lane, connection, nowMs: nowMs)
            if let first, offer.op > first, !cleared.contains(offer.site) {
                refusals[index] = Self.behind(first)
                continue
            }
            if first == offer.op { cleared.insert(offer.site) }
            if let closed {
                refusals[index] = closed
            } else if mayHaveTwins, let twin = own.updateValue(index, forKey: key),
                PublishedContent.contradict(offer.value, offers[twin].value)
            {
                refusals[index] = ReelError(.badEvent, "found op \(offer.op) twice with different content")
            } else if flights[key]?.contains(where: { PublishedContent.contradict(offer.value, $0.value) }) == true {
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
        guard isRefused || refusals.contains(where: { $0 != nil }) else {
            return (take(offers, lanes, partition, connection, ref, nowMs), [])
        }
        return ([], refuse(offers, lanes, refusals, connection, ref, nowMs))
    }

    /// Most often all are of one site.
    private static func lanes(of offers: [Offer], in stream: StreamName) -> [Lane] {
        var lanes: [Lane] = []
        lanes.reserveCapacity(offers.count)
        for offer in offers {
            let last = lanes.last
            lanes.append(last?.site == offer.site ? last! : Lane(stream: stream, site: offer.site))
        }
        return lanes
    }

    /// Why nothing at all can be taken now.
    private func refusal(of offers: [Offer], _ partition: Int, _ connection: Int, _ nowMs: Int64) -> ReelError? {
        if LogState(waitedMs: waitedMs(partition, nowMs: nowMs), settings) == .unavailable {
            return ReelError(
                .logUnavailable,
                "partition \(partition) of the log has not answered for more than \(settings.unavailableMs) ms",
                retryMs: 1_000
            )
        }
        let size = offers.reduce(0) { $0 + Flight.cost(of: $1.value) }
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
        _ lanes: [Lane],
        _ refusals: [ReelError?],
        _ connection: Int,
        _ ref: [UInt8]?,
        _ nowMs: Int64
    ) -> [Settled] {
        zip(zip(offers, lanes), refusals).map { offered, refusal in
            let (offer, lane) = offered
            let error = refusal ?? ReelError(.gap, "another event of the same publish was refused", retryMs: 0)
            // The first copy of what is a conflict was consumed: nothing is missing before later ops.
            if error.code != .conflict {
                nacked.add(offer.op, lane, connection, nowMs: nowMs)
            }
            return Settled(
                connection: connection,
                stream: lane.stream,
                ref: ref,
                site: offer.site,
                op: offer.op,
                answer: .nacked(error)
            )
        }
    }

    private mutating func take(
        _ offers: [Offer],
        _ lanes: [Lane],
        _ partition: Int,
        _ connection: Int,
        _ ref: [UInt8]?,
        _ nowMs: Int64
    ) -> [Flight] {
        var flights: [Flight] = []
        flights.reserveCapacity(offers.count)
        for (offer, lane) in zip(offers, lanes) {
            let flight = Flight(
                lane,
                offer.op,
                offer.value,
                partition: partition,
                connection: connection,
                takenMs: nowMs
            )
            begin(flight)
            nacked.taken(offer.op, lane, connection)
            flights.append(flight)
        }
        var rest = flights[...]
        while let first = rest.first {
            let own = rest.prefix { $0.lane == first.lane }
            Self.wait(for: own, ref, &self.lanes[connection, default: [:]][first.lane, default: Queue()])
            rest = rest.dropFirst(own.count)
        }
        return flights
    }

    // Static: a copy of the ledger would make a copy of the queue.
    private static func wait(for flights: ArraySlice<Flight>, _ ref: [UInt8]?, _ waiting: inout Queue<Waiting>) {
        for flight in flights { waiting.append(Waiting(ref: ref, flight: flight)) }
    }
}
