import ReelCore
import ReelLog

/// The place where a gateway begins to read a partition: some records before its end, so that the ring is not empty.
///
/// The records that it leaves out could contain the end of the epoch. Then all records after that would be void. But a
/// gateway reads the partition before it appends, and appends nothing if the epoch has ended. A record names the last
/// record that its gateway had read, and so vouches for all records up to that one. The start moves towards the first
/// record until all records that it leaves out are vouched for.
struct WarmStart: Equatable {
    /// The first seq to read.
    var from: Seq
    /// True if the partition begins with the state of an earlier epoch, which no event contains.
    var hasSeeds = false
    /// True if the start is in the middle of that state.
    var isInSeeds = false

    /// The phase of the rules at the first record to read.
    var phase: PartitionRules.Phase { from == 0 || isInSeeds ? .seeds : .open }

    /// The maximum number of bytes per read of the scan.
    private static let scanBytes = 1 << 20

    /// Returns the starts in a log with these bounds, at least `records` records before each end if there are as many.
    /// Blocks.
    static func find(in log: any EventLog, bounds: [LogBounds], records: Int64) throws(LogError) -> [WarmStart] {
        var starts: [WarmStart] = []
        for (partition, bounds) in bounds.enumerated() {
            let (first, end) = (max(0, bounds.first), bounds.last + 1)
            var start = WarmStart(from: max(first, end - max(1, records)))
            var (next, vouched) = (end, Seq.none)
            while start.from > first {
                vouched = max(vouched, try highestWitness(partition, of: log, from: start.from, to: next - 1))
                guard vouched < start.from - 1 else { break }
                next = start.from
                start.from = max(first, vouched + 1, start.from - (end - start.from))
            }
            // Also for a start at the first record: a device may subscribe before the gateway has read the seeds.
            if first == 0, end > 0 {
                start.hasSeeds = try isSeed(0, partition, of: log)
                if start.hasSeeds { start.isInSeeds = try isSeed(start.from, partition, of: log) }
            }
            starts.append(start)
        }
        return starts
    }

    private static func isSeed(_ seq: Seq, _ partition: Int, of log: any EventLog) throws(LogError) -> Bool {
        let batch = try log.read(partition, from: seq, to: seq, bytes: 1)
        guard let entry = batch.entry(at: seq) else { return false }
        return batch.withRecord(entry) { _, value in (try? ParsedSeed(value)) != nil }
    }

    /// Returns the highest seq that the gateway of one of these records had read when it appended the record; −1: none.
    private static func highestWitness(
        _ partition: Int,
        of log: any EventLog,
        from: Seq,
        to: Seq
    ) throws(LogError) -> Seq {
        let rules = PartitionRules(partition: partition, of: log.partitions)
        var event = ParsedEvent()
        var (next, highest) = (from, Seq.none)
        while next <= to {
            let batch = try log.read(partition, from: next, to: to, bytes: scanBytes)
            guard !batch.seqs.isEmpty else { break }
            // The last record most often names the highest seq, so few records are parsed.
            for entry in batch.entries.reversed() {
                guard let seq = entry.witness?.seq, seq > highest, seq < entry.seq else { continue }
                let isWitness = batch.withRecord(entry) { rules.isWitness(key: $0, value: $1, event: &event) }
                if isWitness { highest = seq }
            }
            next = batch.seqs.upperBound
        }
        return highest
    }
}
