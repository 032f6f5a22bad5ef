import ReelCore

extension PublishLedger {
    /// Called when a record was read back. Only the exact bytes that were handed over count for an ack. Returns the
    /// record if the log had reported it before; pass it to `finish`.
    mutating func readBack(_ lane: PublisherKey, _ op: Op, seq: Seq, value: UnsafeRawBufferPointer) -> PendingRecord? {
        nacked.read(op, lane)
        guard let own = pendingRecords[lane] else { return nil }
        func isRead(_ record: PendingRecord) -> Bool { record.value.withUnsafeBytes { $0.equals(value) } }
        let record: PendingRecord?
        if own.isRepeated(op), let equal = own.first(op, where: isRead) {
            own.note(op, at: seq, equal.value)
            let promised = promised[equal.partition].first { $0.seq == seq && !$0.record.isOver }?.record
            record = own.first(op) { record in
                guard record.seq == nil, isRead(record) else { return false }
                return promised.map { $0 === record } ?? !record.isPromised
            }
        } else {
            record = own.first(op) { $0.seq == nil && isRead($0) }
        }
        record?.seq = seq
        return record?.isReported == true ? record : nil
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
        for (record, seq) in zip(pendingRecords, seqs) where seq != .none && !record.isOver {
            try check(record, isAt: seq, head)
        }
        for (record, seq) in zip(pendingRecords, seqs) {
            record.isReported = true
            if seq == .none { record.placelessMs = nowMs }
        }
        return finish(pendingRecords.filter { $0.seq != nil && !$0.isOver })
    }

    /// Throws `diverged` if a reported seq is impossible. A copy of the record may be at a lower seq: the log's answer
    /// was lost, and the record was written again. No other difference is possible.
    private mutating func check(_ record: PendingRecord, isAt seq: Seq, _ head: Seq) throws(ReelError) {
        guard seq > record.headWhenHandedOver else {
            throw ReelError(
                .diverged,
                "the log gave seq \(seq) of partition \(record.partition) to a record, \(record.headWhenHandedOver) had"
                    + " been read before"
            )
        }
        correct(record, isAt: seq)
        if let found = record.seq {
            guard found <= seq else { throw Self.broken(seq, record) }
        } else if seq <= head {
            throw Self.broken(seq, record)
        } else {
            promised[record.partition].append((seq, record))
        }
    }

    /// Corrects the seq of a record that was a guess. A client may have sent its event again within the same
    /// millisecond. Then two records are equal, and only the log's reports tell them apart.
    private func correct(_ record: PendingRecord, isAt seq: Seq) {
        guard record.seq != seq, let own = pendingRecords[record.lane] else { return }
        if own.isGuess(record, at: seq) {
            record.seq = seq
        } else if let guess = record.seq, own.isGuess(record, at: guess) {
            record.seq = nil
        }
    }

    /// Called when all records up to `head` were read. Throws `diverged` if a record is not at the seq that the log had
    /// reported.
    mutating func read(_ partition: Int, to head: Seq) throws(ReelError) {
        while let (seq, record) = promised[partition].first, seq <= head {
            _ = promised[partition].popFirst()
            guard record.seq != nil || record.isOver else { throw Self.broken(seq, record) }
        }
    }

    private static func broken(_ seq: Seq, _ record: PendingRecord) -> ReelError {
        ReelError(
            .diverged,
            "the log said that a record is at seq \(seq) of partition \(record.partition), where another was read"
        )
    }

    /// Called when the log could not append these records, or does not know if it has. Returns their nacks.
    mutating func failed(_ pendingRecords: [PendingRecord], _ error: ReelError, nowMs: Int64) -> [Resolution] {
        var settled: [Resolution] = []
        for record in pendingRecords { end(CollectionOfOne(record)) }
        for record in pendingRecords {
            let heir = heir(of: record)
            heir?.seq = record.seq
            settled += fail(record, error, nowMs)
            if let heir, heir.isReported { settled += finish([heir]) }
        }
        return settled
    }

    /// Returns the equal record that was perhaps read in place of a failed one; nil: there is none.
    private func heir(of failed: PendingRecord) -> PendingRecord? {
        guard let seq = failed.seq, let own = pendingRecords[failed.lane], own.isGuess(failed, at: seq) else {
            return nil
        }
        return own.first(failed.op) { record in
            record.seq == nil && !record.isPromised && record.headWhenHandedOver < seq && record.value == failed.value
        }
    }

    /// Nacks the records that the log has reported without a seq and has not shown for long. Nothing else proves that
    /// they are lost.
    mutating func giveUpUnseen(nowMs: Int64) -> [Resolution] {
        let unseen = oldest.indices.flatMap { partition in
            inFlight(partition).prefix { nowMs - $0.takenMs > settings.unavailableMs }.filter { record in
                guard record.seq == nil, let sinceMs = record.placelessMs else { return false }
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
        while let entry = lanes.values[own].values[place].first, entry.record.isReported, let seq = entry.record.seq {
            _ = lanes.values[own].values[place].popFirst()
            settled.append(Self.settled(entry, .acked(seq)))
        }
        if lanes.values[own].values[place].isEmpty { lanes.values[own].remove(at: place) }
        if lanes.values[own].isEmpty { lanes.remove(at: own) }
    }

    /// Nacks the record's entry in its lane, and all entries after it.
    private mutating func fail(_ record: PendingRecord, _ error: ReelError, _ nowMs: Int64) -> [Resolution] {
        guard let waiting = lanes[record.connection]?[record.lane],
            let place = (0..<waiting.count).first(where: { waiting[$0].record === record })
        else { return [] }
        var settled: [Resolution] = []
        for index in place..<waiting.count {
            let entry = waiting[index]
            settled.append(Self.settled(entry, .nacked(index == place ? error : Self.behind(record.op))))
            if entry.record.seq == nil { nacked.add(entry.record.op, record.lane, record.connection, nowMs: nowMs) }
        }
        lanes[record.connection]?[record.lane]?.removeAll(from: place)
        dropIfEmpty(record.lane, record.connection)
        return settled
    }

    private mutating func dropIfEmpty(_ lane: PublisherKey, _ connection: Int) {
        guard lanes[connection]?[lane]?.isEmpty == true else { return }
        lanes[connection]?[lane] = nil
        if lanes[connection]?.isEmpty == true { lanes[connection] = nil }
    }

    private static func settled(_ entry: Waiting, _ answer: Resolution.Answer) -> Resolution {
        Resolution(
            connection: entry.record.connection,
            stream: entry.record.lane.stream,
            ref: entry.ref,
            site: entry.record.lane.site,
            op: entry.record.op,
            answer: answer
        )
    }
}
