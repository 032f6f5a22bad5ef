import ReelCore

extension PublishLedger {
    /// Called when a record was read back. Only the exact bytes that were handed over count for an ack. Returns the
    /// record if the log had reported it before; pass it to `finish`.
    mutating func readBack(_ lane: PublisherKey, _ op: Op, seq: Seq, value: UnsafeRawBufferPointer) -> PendingRecord? {
        nacked.read(op, lane)
        let flight = pendingRecords[lane]?.first(op) { flight in
            flight.seq == nil && flight.value.withUnsafeBytes { $0.equals(value) }
        }
        flight?.seq = seq
        return flight?.isReported == true ? flight : nil
    }

    /// Called when the log has reported records without an error. Returns the answers that are now known.
    ///
    /// - Parameters:
    ///   - pendingRecords: The records.
    ///   - seqs: The seq of each record; −1: the log does not know it.
    ///   - head: The last seq that was read.
    ///   - nowMs: The time in milliseconds.
    /// - Throws: `diverged` if a seq is impossible; then nothing was acked.
    mutating func reported(
        _ pendingRecords: [PendingRecord],
        at seqs: [Seq],
        head: Seq,
        nowMs: Int64
    ) throws(ReelError) -> [Resolution] {
        for (flight, seq) in zip(pendingRecords, seqs) where seq != .none && !flight.isOver {
            try check(flight, isAt: seq, head)
        }
        for (flight, seq) in zip(pendingRecords, seqs) {
            flight.isReported = true
            if seq == .none { flight.placelessMs = nowMs }
        }
        return finish(pendingRecords.filter { $0.seq != nil && !$0.isOver })
    }

    /// Throws `diverged` if a reported seq is impossible. A copy of the record may be at a lower seq: the log's answer
    /// was lost, and the record was written again. No other difference is possible.
    private mutating func check(_ flight: PendingRecord, isAt seq: Seq, _ head: Seq) throws(ReelError) {
        guard seq > flight.headWhenHandedOver else {
            throw ReelError(
                .diverged,
                "the log gave seq \(seq) of partition \(flight.partition) to a record, \(flight.headWhenHandedOver) had"
                    + " been read before"
            )
        }
        if let found = flight.seq {
            guard found <= seq else { throw Self.broken(seq, flight) }
        } else if seq <= head {
            throw Self.broken(seq, flight)
        } else {
            promised[flight.partition].append((seq, flight))
        }
    }

    /// Called when all records up to `head` were read. Throws `diverged` if a record is not at the seq that the log had
    /// reported.
    mutating func read(_ partition: Int, to head: Seq) throws(ReelError) {
        while let (seq, flight) = promised[partition].first, seq <= head {
            _ = promised[partition].popFirst()
            guard flight.seq != nil || flight.isOver else { throw Self.broken(seq, flight) }
        }
    }

    private static func broken(_ seq: Seq, _ flight: PendingRecord) -> ReelError {
        ReelError(
            .diverged,
            "the log said that a record is at seq \(seq) of partition \(flight.partition), where another was read"
        )
    }

    /// Called when the log could not append these records, or does not know if it has. Returns their nacks.
    mutating func failed(_ pendingRecords: [PendingRecord], _ error: ReelError, nowMs: Int64) -> [Resolution] {
        var settled: [Resolution] = []
        for flight in pendingRecords {
            end(CollectionOfOne(flight))
            settled += fail(flight, error, nowMs)
        }
        return settled
    }

    /// Nacks the records that the log has reported without a seq and has not shown for long. Nothing else proves that
    /// they are lost.
    mutating func giveUpUnseen(nowMs: Int64) -> [Resolution] {
        let unseen = oldest.indices.flatMap { partition in
            inFlight(partition).prefix { nowMs - $0.takenMs > settings.unavailableMs }.filter { flight in
                guard flight.seq == nil, let sinceMs = flight.placelessMs else { return false }
                return nowMs - sinceMs > settings.unavailableMs
            }
        }
        let error = ReelError(.logUnavailable, "the log said that it has the event, and does not show it", retryMs: 0)
        return failed(unseen, error, nowMs: nowMs)
    }

    /// Acks the records that were both read back and reported, if no record before them in their lane is unanswered.
    mutating func finish(_ pendingRecords: [PendingRecord]) -> [Resolution] {
        var settled: [Resolution] = []
        var rest = pendingRecords[...]
        while let first = rest.first {
            let run = rest.prefix { $0.connection == first.connection && $0.lane == first.lane }
            end(run)
            settle(first.connection, first.lane, &settled)
            rest = rest.dropFirst(run.count)
        }
        return settled
    }

    /// Acks the durable records at the front of the lane.
    private mutating func settle(_ connection: Int, _ lane: PublisherKey, _ settled: inout [Resolution]) {
        guard let own = lanes.index(forKey: connection), let place = lanes.values[own].index(forKey: lane) else {
            return
        }
        while let entry = lanes.values[own].values[place].first, entry.flight.isReported, let seq = entry.flight.seq {
            _ = lanes.values[own].values[place].popFirst()
            settled.append(Self.settled(entry, .acked(seq)))
        }
        if lanes.values[own].values[place].isEmpty { lanes.values[own].remove(at: place) }
        if lanes.values[own].isEmpty { lanes.remove(at: own) }
    }

    /// Nacks the record's entry in its lane, and all entries after it.
    private mutating func fail(_ flight: PendingRecord, _ error: ReelError, _ nowMs: Int64) -> [Resolution] {
        guard let waiting = lanes[flight.connection]?[flight.lane],
            let place = (0..<waiting.count).first(where: { waiting[$0].flight === flight })
        else { return [] }
        var settled: [Resolution] = []
        for index in place..<waiting.count {
            let entry = waiting[index]
            settled.append(Self.settled(entry, .nacked(index == place ? error : Self.behind(flight.op))))
            if entry.flight.seq == nil { nacked.add(entry.flight.op, flight.lane, flight.connection, nowMs: nowMs) }
        }
        lanes[flight.connection]?[flight.lane]?.removeAll(from: place)
        dropIfEmpty(flight.lane, flight.connection)
        return settled
    }

    private mutating func dropIfEmpty(_ lane: PublisherKey, _ connection: Int) {
        guard lanes[connection]?[lane]?.isEmpty == true else { return }
        lanes[connection]?[lane] = nil
        if lanes[connection]?.isEmpty == true { lanes[connection] = nil }
    }

    private static func settled(_ entry: Waiting, _ answer: Resolution.Answer) -> Resolution {
        Resolution(
            connection: entry.flight.connection,
            stream: entry.flight.lane.stream,
            ref: entry.ref,
            site: entry.flight.lane.site,
            op: entry.flight.op,
            answer: answer
        )
    }
}
