import ReelBase
import ReelCore
import ReelLog
import ReelNode

/// A range of seqs of a partition that was read from the log and parsed once for all clients that catch up there. It
/// indexes the delivered records by stream. It never changes.
final class LogPage: Sendable {
    /// The approximate memory in bytes of a page, a record and a stream, without their contents.
    private static let (pageCostBytes, recordCostBytes, streamCostBytes) = (512, 96, 128)

    /// The seqs that the page covers.
    let seqs: Range<Seq>
    /// The approximate number of bytes that the page takes in memory.
    let costBytes: Int
    /// The records that were read.
    private let batch: RecordBatch
    /// The indexes of the delivered records in the batch's entries.
    private let records: [UInt32]
    /// The indexes of barriers in `records`.
    private let barriers: [Int]
    /// The number of each stream that has events here.
    private let streams: [StreamName: Int]
    /// The indexes in `records` of the events, grouped by stream. The group of a stream begins at `starts[number]`.
    private let events: [UInt32]
    private let starts: [Int]

    /// Reads seqs from the log: as many as fit into about `bytesMax` bytes, and at least one. Records after `end`, the
    /// end of the epoch, are void. Blocks.
    init(
        _ log: any EventLog,
        _ partition: Int,
        _ wanted: ClosedRange<Seq>,
        bytes bytesMax: Int,
        end: Seq,
        validated: ValidatedRanges
    ) throws(LogError) {
        let from = wanted.lowerBound
        let batch = try log.read(partition, from: from, to: wanted.upperBound, bytes: bytesMax).compact()
        guard batch.seqs.lowerBound == from, !batch.seqs.isEmpty else {
            throw LogError(.logUnavailable, "the log returned no record at seq \(from), although it has one")
        }
        let isValid = validated.contains(batch.seqs, of: partition)
        var rules = PartitionRules(partition: partition, of: log.partitions, phase: from == 0 ? .seeds : .open)
        var event = ParsedEvent()
        var table = StreamTable()
        var (records, barriers): ([UInt32], [Int]) = ([], [])
        records.reserveCapacity(batch.entries.count)
        // The number of each delivered record's stream; nil: it is a barrier.
        var numbers: [Int?] = []
        numbers.reserveCapacity(batch.entries.count)
        var (expected, pageEnd, isValidHere) = (from, batch.seqs.upperBound, true)
        for (index, entry) in batch.entries.enumerated() {
            if entry.seq > expected { rules.hole() }
            expected = entry.seq + 1
            let isKnown = batch.withRecord(entry) { key, value in
                var number: Int?
                if entry.seq > end {
                    isValidHere = false
                    return true
                }
                if isValid {
                    // The key of a barrier is not a stream name.
                    number = table.index(ofKey: key)
                } else {
                    switch rules.read(key: key, value: value, into: &event) {
                    case .event: number = table.index(ofKey: key)
                    case .barrier: break
                    case .seed, .void:
                        isValidHere = false
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
                pageEnd = entry.seq
                break
            }
        }
        guard pageEnd > from else {
            throw LogError(.internal, "found a barrier at seq \(from) that this version does not know")
        }
        seqs = from..<pageEnd
        if isValidHere, !isValid { validated.add(seqs, of: partition) }
        (starts, events) = Self.order(numbers, of: table.names.count)
        streams = table.indexes
        costBytes =
            Self.pageCostBytes + batch.heldBytes + Self.recordCostBytes * batch.entries.count
            + Self.streamCostBytes * streams.count
        (self.batch, self.records, self.barriers) = (batch, records, barriers)
    }

    /// Groups the indexes of all numbers by number (a counting sort). Returns them, and where the group of each number
    /// begins.
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

    /// Returns the maximum size in bytes of a stream's events in the page.
    func size(of stream: StreamName) -> Int {
        places(of: stream).reduce(0) { $0 + EventRange.size(value: entry(Int(events[$1])).valueCount) }
    }

    /// Extends a range of a stream that ends in this page or right before it.
    ///
    /// - Parameters:
    ///   - builder: The range.
    ///   - filter: The filter for events.
    ///   - stream: The stream.
    ///   - to: The last seq of the range at most.
    /// - Returns: False if the range is full.
    func extend(
        _ builder: inout EventRangeBuilder,
        through filter: inout FilterRun,
        with stream: StreamName,
        to: Seq
    ) -> Bool {
        let (from, last) = (builder.range.to + 1, min(to, seqs.upperBound - 1))
        let places = places(of: stream)
        var place = places.partitioningIndex { entry(Int(events[$0])).seq < from }
        var barrier = barriers.partitioningIndex { entry($0).seq < from }
        while true {
            let ours = place < places.upperBound ? Int(events[place]) : .max
            let index = min(ours, barrier < barriers.count ? barriers[barrier] : .max)
            guard index < records.count, entry(index).seq <= last else {
                builder.prove(to: last)
                return true
            }
            let record = entry(index)
            let isAdded = batch.withRecord(record) { _, value in
                builder.add(record.seq, value, through: &filter, isEvent: index == ours)
            }
            guard isAdded else { return false }
            if index == ours { place += 1 } else { barrier += 1 }
        }
    }

    /// Returns the delivered record at this index of `records`.
    private func entry(_ index: Int) -> RecordBatch.Entry { batch.entries[Int(records[index])] }

    /// Returns the range in `events` of a stream's events.
    private func places(of stream: StreamName) -> Range<Int> {
        streams[stream].map { starts[$0]..<starts[$0 + 1] } ?? 0..<0
    }
}
