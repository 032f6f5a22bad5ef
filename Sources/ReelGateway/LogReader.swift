import ReelCore
import ReelLog
import ReelNode

/// Reads the events of one stream from the log itself, a bounded piece at a time. On a thread that may block.
struct LogReader: Sendable {
    let stream: StreamName
    /// What is wanted of it; nil: everything.
    let filter: EventFilter?
    let partition: Int
    let partitions: Int
    /// The last seq that is not void because the epoch has ended before it.
    let end: Seq
    let sound: SoundSeqs

    /// What one look into the log reads at most, all streams together.
    private static let scanBytes = 512 << 10

    /// Events from `from` on, up to `to` at most: as many as fit and as one look brings.
    func read(
        _ log: any EventLog,
        from: Seq,
        to: Seq,
        bytes: Int,
        events: Int
    ) -> Result<EventsChunk, LogError> {
        do throws(LogError) {
            let batch = try log.read(partition, from: from, to: to, bytes: min(bytes, Self.scanBytes))
            guard batch.seqs.lowerBound == from, !batch.seqs.isEmpty else {
                throw LogError(.logUnavailable, "the log gave nothing at seq \(from), where it has a record")
            }
            let chunk = chunk(of: batch, bytes: bytes, events: events)
            guard chunk.to >= from else {
                throw LogError(.internal, "found a barrier at seq \(from) that this version does not know")
            }
            return .success(chunk)
        } catch {
            return .failure(error)
        }
    }

    private func chunk(of batch: RecordBatch, bytes: Int, events: Int) -> EventsChunk {
        var rules = PartitionRules(
            partition: partition,
            of: partitions,
            phase: batch.seqs.lowerBound == 0 ? .seeds : .open
        )
        var event = ParsedEvent()
        let entryBytes = batch.entries.reduce(0) { $0 + EventsChunk.size(value: $1.byteCount) }
        var chunk = EventsChunk(
            from: batch.seqs.lowerBound,
            to: batch.seqs.upperBound - 1,
            room: filter == nil ? min(bytes, entryBytes) : 0
        )
        // A filter wants to see an event's parts.
        let isSound = filter == nil && sound.contains(batch.seqs, of: partition)
        var isSoundHere = true
        let key = stream.key
        var expected = batch.seqs.lowerBound
        for entry in batch.entries {
            if entry.seq > expected { rules.hole() }
            expected = entry.seq + 1
            let isFull: Bool = batch.withRecord(entry) { found, value in
                let isOurs = key.withUnsafeBytes { $0.equals(found) }
                guard entry.seq <= end, isOurs || StreamName.barrierKey.utf8.elementsEqual(found) else {
                    isSoundHere = false
                    return false
                }
                if !isSound || !isOurs {
                    switch rules.read(key: found, value: value, into: &event) {
                    case .barrier: break
                    case .event: if let filter, !filter.wants(event, value) { return false }
                    case .seed, .void:
                        isSoundHere = false
                        return false
                    case .unknownBarrier: return true
                    }
                }
                let isTooMuch = chunk.body.count + EventsChunk.size(value: value.count) > bytes
                if chunk.count == events || chunk.count > 0 && isTooMuch { return true }
                chunk.append(seq: entry.seq, value: value)
                return false
            }
            if isFull {
                chunk.to = entry.seq - 1
                break
            }
        }
        if isSoundHere, !isSound { sound.add(chunk.from..<chunk.to + 1, of: partition) }
        return chunk
    }
}
