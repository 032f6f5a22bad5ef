import ReelCore
import ReelLog
import ReelNode

/// Seqs of a partition, read from the log and taken apart once for all who catch up there: what is delivered of them,
/// by stream. It never changes.
final class LogPage: Sendable {
    /// So many events are taken apart at once for a filter.
    private static let filteredMax = 1_024

    /// The seqs that it accounts for.
    let seqs: Range<Seq>
    /// Bytes that it takes in memory, about.
    let costBytes: Int
    /// What was read.
    private let batch: RecordBatch
    /// The indexes of what is delivered in the batch's entries.
    private let records: [UInt32]
    /// The indexes of barriers in `records`.
    private let barriers: [Int]
    /// The numbers of the streams that have events here.
    private let streams: [StreamName: Int]
    /// The indexes of the events, stream by stream; those of a stream begin at its number's place in `starts`.
    private let events: [UInt32]
    private let starts: [Int]

    /// Reads seqs from the log, as many as stand in about so many bytes, at least one. What stands behind `end`, where
    /// the epoch has ended, is void. Blocks.
    init(
        _ log: any EventLog,
        _ partition: Int,
        _ wanted: ClosedRange<Seq>,
        bytes bytesMax: Int,
        end: Seq,
        sound: ValidatedRanges
    ) throws(LogError) {
        let from = wanted.lowerBound
        let batch = try log.read(partition, from: from, to: wanted.upperBound, bytes: bytesMax).compact()
        guard batch.seqs.lowerBound == from, !batch.seqs.isEmpty else {
            throw LogError(.logUnavailable, "the log gave nothing at seq \(from), where it has a record")
        }
        let isSound = sound.contains(batch.seqs, of: partition)
        var rules = PartitionRules(partition: partition, of: log.partitions, phase: from == 0 ? .seeds : .open)
        var event = ParsedEvent()
        var table = StreamTable()
        var (records, barriers): ([UInt32], [Int]) = ([], [])
        records.reserveCapacity(batch.entries.count)
        // Of each record, its stream's number.
        var numbers: [Int?] = []
        numbers.reserveCapacity(batch.entries.count)
        var (expected, behind, isSoundHere) = (from, batch.seqs.upperBound, true)
        for (index, entry) in batch.entries.enumerated() {
            if entry.seq > expected { rules.hole() }
            expected = entry.seq + 1
            let isKnown = batch.withRecord(entry) { key, value in
                var number: Int?
                if entry.seq > end {
                    isSoundHere = false
                    return true
                }
                if isSound {
                    // The key of a barrier is no stream's name.
                    number = table.index(ofKey: key)
                } else {
                    switch rules.read(key: key, value: value, into: &event) {
                    case .event: number = table.index(ofKey: key)
                    case .barrier: break
                    case .seed, .void:
                        isSoundHere = false
                        return true
                    case .unknownBarrier: return false
                    }
                }
                if number == nil { barriers.append(records.count) }
                numbers.append(number)
                records.append(UInt32(index))
                return true
            }
            if !isKnown {
                behind = entry.seq
                break
            }
        }
        guard behind > from else {
            throw LogError(.internal, "found a barrier at seq \(from) that this version does not know")
        }
        seqs = from..<behind
        if isSoundHere, !isSound { sound.add(seqs, of: partition) }
        (starts, events) = Self.order(numbers, of: table.names.count)
        streams = table.indexes
        costBytes = 512 + batch.heldBytes + 96 * batch.entries.count + 128 * streams.count
        (self.batch, self.records, self.barriers) = (batch, records, barriers)
    }

    /// The indexes of what has a number, by number, and where those of each number begin.
    private static func order(_ numbers: [Int?], of count: Int) -> (starts: [Int], indexes: [UInt32]) {
        var starts = [Int](repeating: 0, count: count + 1)
        for case let number? in numbers { starts[number + 1] += 1 }
        for number in 0..<count { starts[number + 1] += starts[number] }
        var next = starts
        var indexes = [UInt32](repeating: 0, count: starts[count])
        for (index, number) in numbers.enumerated() {
            guard let number else { continue }
            indexes[next[number]] = UInt32(index)
            next[number] += 1
        }
        return (starts, indexes)
    }

    // MARK: Reading

    /// An empty chunk for events of a stream from a seq of this page on, with room for those that it has.
    func chunk(of stream: StreamName, from: Seq, bytes: Int) -> EventRange {
        let size = places(of: stream).reduce(0) { $0 + EventRange.size(value: entry(Int(events[$1])).valueCount) }
        return EventRange(from: from, to: from - 1, room: min(bytes, size))
    }

    /// Goes on with a chunk of a stream that ends in or before this page, up to `to` at most: with as many events as
    /// fit, at least one where there is one and the chunk has none. `looked` counts what was looked at for the filter.
    /// False if the chunk is full.
    func extend(
        _ chunk: inout EventRange,
        with stream: StreamName,
        through filter: EventFilter?,
        to: Seq,
        bytes bytesMax: Int,
        events eventsMax: Int,
        looked: inout Int
    ) -> Bool {
        let (from, last) = (chunk.to + 1, min(to, seqs.upperBound - 1))
        let places = places(of: stream)
        var place = Self.first(in: places) { entry(Int(events[$0])).seq >= from }
        var barrier = Self.first(in: barriers.indices) { entry(barriers[$0]).seq >= from }
        var event = ParsedEvent()
        while true {
            let ours = place < places.upperBound ? Int(events[place]) : .max
            let index = min(ours, barrier < barriers.count ? barriers[barrier] : .max)
            guard index < records.count, entry(index).seq <= last else {
                chunk.to = last
                return true
            }
            let record = entry(index)
            let isFull = chunk.body.count + EventRange.size(value: record.valueCount) > bytesMax
            if chunk.count == eventsMax || chunk.count > 0 && isFull || looked >= Self.filteredMax {
                chunk.to = record.seq - 1
                return false
            }
            batch.withRecord(record) { _, value in
                if let filter, index == ours {
                    looked += 1 + value.count / 256
                    guard filter.wants(value, &event) else { return }
                }
                chunk.append(seq: record.seq, value: value)
            }
            if index == ours { place += 1 } else { barrier += 1 }
        }
    }

    /// What is delivered at this place.
    private func entry(_ index: Int) -> RecordBatch.Entry { batch.entries[Int(records[index])] }

    /// Where the events of a stream stand in `events`.
    private func places(of stream: StreamName) -> Range<Int> {
        streams[stream].map { starts[$0]..<starts[$0 + 1] } ?? 0..<0
    }

    /// The first index that satisfies the condition, where those that do stand at the end.
    private static func first(in range: Range<Int>, where isBehind: (Int) -> Bool) -> Int {
        var (low, high) = (range.lowerBound, range.upperBound)
        while low < high {
            let middle = (low + high) / 2
            if isBehind(middle) { high = middle } else { low = middle + 1 }
        }
        return low
    }
}
