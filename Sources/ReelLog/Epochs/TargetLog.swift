internal import Glibc
internal import ReelCore

/// The log of a new epoch before it is the current one. Each partition has consecutive seeds, then `open`.
final class TargetLog {
    /// The reading state of a partition.
    private struct Partition {
        var rules: PartitionRules
        var next: Seq = 0
        var last: Witness?
        var isOpen = false
    }

    private let log: any EventLog
    private let progress: (EpochProgress) throws -> Void
    private var partitions: [Partition]

    init(_ log: any EventLog, _ progress: @escaping (EpochProgress) throws -> Void) {
        self.log = log
        self.progress = progress
        partitions = (0..<log.partitions).map {
            Partition(rules: PartitionRules(partition: $0, of: log.partitions))
        }
    }

    /// True if any partition has `open`. It is written only after the seeds of all partitions are complete and were
    /// read back.
    func isOpen() throws -> Bool {
        for partition in partitions.indices { try readMore(partition) }
        return partitions.contains { $0.isOpen }
    }

    /// Folds the seeds, and compares the result with the state from which they were written.
    func verify(_ expected: [StreamName: SeedSum]) throws {
        var expected = expected
        for partition in partitions.indices {
            partitions[partition] = Partition(rules: PartitionRules(partition: partition, of: log.partitions))
            var fold = PartitionFold(partition: partition, of: log.partitions, epoch: log.epoch)
            try readMore(partition) { key, value, seq in _ = fold.read(key: key, value: value, seq: seq) }
            for (stream, state) in fold.streams {
                let (found, wanted) = (SeedSum(state), expected.removeValue(forKey: stream) ?? SeedSum())
                guard found == wanted else { throw difference(stream, found, wanted) }
            }
        }
        // A stream without state has no seed to compare: all its events were without effect.
        if let (stream, wanted) = expected.first(where: { $0.value != SeedSum() }) {
            throw difference(stream, SeedSum(), wanted)
        }
    }

    private func difference(_ stream: StreamName, _ found: SeedSum, _ wanted: SeedSum) -> LogError {
        LogError(
            .damaged,
            "the new log \(log.epoch) does not hold what was written to it: stream \(stream) has"
                + " \(found.objects) objects, \(found.tombstones) tombstones and \(found.sites) sites there, expected"
                + " \(wanted.objects), \(wanted.tombstones) and \(wanted.sites), all alike. It is not made the current"
                + " log"
        )
    }

    /// Timeout for reading back what was written.
    private static let readBackMs = 10_000

    /// Writes `open` to each partition that lacks it, and reads it back.
    func open() throws {
        for partition in partitions.indices where !partitions[partition].isOpen {
            let append = try BulkAppend(log)
            let barrier = LogAppend(
                key: Array(StreamName.barrierKey.utf8),
                value: Barrier.open.value,
                witness: partitions[partition].last
            )
            try append.add(barrier, to: partition)
            try append.finish()
            for _ in 0..<Self.readBackMs / 20 where !partitions[partition].isOpen {
                try readMore(partition)
                if !partitions[partition].isOpen { usleep(20_000) }
            }
            guard partitions[partition].isOpen else {
                throw LogError(
                    .logUnavailable,
                    "`open` was written to partition \(partition) of \(log.epoch), and cannot be read back"
                )
            }
            let seq = partitions[partition].next - 1
            try progress(EpochProgress(step: .opening, partition: partition, seq: seq, last: seq))
        }
    }

    /// Continues to read a partition, up to `open` or to the current end of the log.
    private func readMore(_ number: Int, _ body: (_ key: Bytes, _ value: Bytes, _ seq: Seq) -> Void = { _, _, _ in })
        throws
    {
        guard !partitions[number].isOpen else { return }
        let last = try log.bounds(number).last
        var event = ParsedEvent()
        while partitions[number].next <= last, !partitions[number].isOpen {
            let batch = try log.piece(number, from: partitions[number].next, to: last)
            for entry in batch.entries where !partitions[number].isOpen {
                try batch.withRecord(entry) { key, value in
                    guard entry.seq == partitions[number].next else { throw broken(number, entry.seq) }
                    switch partitions[number].rules.read(key: key, value: value, into: &event) {
                    case .seed: body(key, value, entry.seq)
                    case .barrier(.open): partitions[number].isOpen = true
                    default: throw broken(number, entry.seq)
                    }
                }
                partitions[number].next = entry.seq + 1
            }
            partitions[number].last = batch.entry(at: partitions[number].next - 1).map { batch.witness(of: $0) }
            try progress(
                EpochProgress(step: .verifying, partition: number, seq: partitions[number].next - 1, last: last)
            )
        }
    }

    private func broken(_ partition: Int, _ seq: Seq) -> LogError {
        LogError(
            .damaged,
            "the new log \(log.epoch) holds something else than a seed at seq \(seq) of partition \(partition)"
        )
    }
}
