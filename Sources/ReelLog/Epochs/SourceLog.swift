internal import Glibc
internal import ReelCore

/// The log of the epoch that ends: its readable records, and the snapshots for those that cannot be read.
final class SourceLog {
    /// The result of the search in a partition.
    struct Partition {
        var bounds: LogBounds
        /// The last record that was examined.
        var last: Witness?
        /// The seq of the epoch's end, and the next epoch; nil: no end was found.
        var end: (seq: Seq, next: Epoch)?
    }

    let current: CurrentLog
    /// True if a store or the archive names the deployment of the log.
    let deploymentIsKnown: Bool
    /// The log; nil: it is gone.
    private let log: (any EventLog)?
    /// Why the log is gone: a sentence.
    private let absence: String
    private let archive: (any StateArchive)?
    /// True if seqs that cannot be read are skipped.
    private let skipsDamage: Bool
    private let progress: (EpochProgress) throws -> Void
    private(set) var found: [Partition] = []
    /// The last seq that a node has announced, by partition.
    private var announced: [Int: Seq] = [:]

    /// The substitute for an unknown log number. Devices refuse a log with a lower number than one that they have seen.
    /// No operator has changed the epoch this many times.
    private static let unknownNumber = 1_000_000

    /// Opens the current log of the store. If the store knows no log, the archive's log is used: it may still exist.
    init(
        _ store: any LogStore,
        _ archive: (any StateArchive)?,
        skipsDamage: Bool,
        _ progress: @escaping (EpochProgress) throws -> Void
    ) throws {
        self.archive = archive
        self.skipsDamage = skipsDamage
        self.progress = progress
        let known = try store.current()
        deploymentIsKnown = known != nil || archive?.deployment != nil
        if let known {
            current = known
        } else if let archive {
            let number = archive.number ?? Self.unknownNumber
            current = CurrentLog(
                epoch: archive.epoch,
                partitions: archive.partitions,
                number: number,
                deployment: archive.deployment
            )
        } else {
            throw LogError(.logUnavailable, "there is no log yet, and so no epoch that could end")
        }
        guard current.number < largestInteger else {
            throw LogError(.damaged, "found log number \(current.number), expected less than \(largestInteger)")
        }
        if let archive, archive.epoch != current.epoch || archive.partitions != current.partitions {
            throw LogError(
                .badRequest,
                "found snapshots of epoch \(archive.epoch) with \(archive.partitions) partitions, expected those of"
                    + " \(current.epoch) with \(current.partitions)"
            )
        }
        switch store.find(current.epoch) {
        case .success(let log): (self.log, absence) = (log, "")
        case .failure(let error):
            // An unreachable log, or one that this user may not read, is not lost.
            guard archive != nil, ![.logUnavailable, .forbidden].contains(error.code) else { throw error }
            (log, absence) = (nil, known == nil ? "no log is known" : "the log cannot be opened: \(error.message)")
        }
    }

    /// True if the log itself exists.
    var isThere: Bool { log != nil }

    func close() { log?.close() }

    /// Takes recent announcements of the log's nodes: they say where a log that is gone has ended.
    func heard(_ nodes: [NodeAnnouncement]) {
        for position in nodes.flatMap({ $0.positions(in: current.epoch) }) {
            announced[position.partition] = max(announced[position.partition] ?? .none, position.seq)
        }
    }

    // MARK: Barriers

    /// Searches all partitions for the end of the epoch.
    func look() throws {
        guard let log else { return }
        for partition in 0..<current.partitions {
            let bounds = try bounds(of: partition, log)
            let known = Partition(bounds: bounds, last: nil)
            found.append(try search(partition, of: log, known, from: max(0, bounds.first)))
        }
    }

    /// The next epoch, if this one has ended. Partition 0 decides.
    var next: Epoch? { found.first?.end?.next }

    private func bounds(of partition: Int, _ log: any EventLog) throws(LogError) -> LogBounds {
        skipsDamage ? try log.boundsPassingDamage(partition) : try log.bounds(partition)
    }

    private func search(
        _ partition: Int,
        of log: any EventLog,
        _ known: Partition,
        from: Seq
    ) throws -> Partition {
        var found = known
        found.bounds = try bounds(of: partition, log)
        var next = max(from, found.bounds.first)
        while found.end == nil, next <= found.bounds.last {
            let batch: RecordBatch
            do throws(LogError) {
                batch = try log.piece(partition, from: next, to: found.bounds.last)
            } catch {
                guard skipsDamage else { throw error }
                next = try log.damage(partition, from: next, to: found.bounds.last, error).seqs.upperBound + 1
                continue
            }
            for entry in batch.entries where found.end == nil {
                found.end = try batch.withRecord(entry) { key, value in try Self.end(key, value, entry.seq, partition) }
            }
            if let entry = batch.entries.last { found.last = batch.witness(of: entry) }
            next = batch.seqs.upperBound
            try progress(EpochProgress(step: .looking, partition: partition, seq: next - 1, last: found.bounds.last))
        }
        return found
    }

    private static func end(
        _ key: Bytes,
        _ value: Bytes,
        _ seq: Seq,
        _ partition: Int
    ) throws -> (seq: Seq, next: Epoch)? {
        guard StreamName.barrierKey.utf8.elementsEqual(key) else { return nil }
        switch Barrier.read(value) {
        case .known(.end(let next)): return (seq, next)
        case .unknown: throw unknownBarrier(at: seq, of: partition)
        case .known, .none: return nil
        }
    }

    private static func unknownBarrier(at seq: Seq, of partition: Int) -> LogError {
        LogError(
            .internal,
            "found a barrier at seq \(seq) of partition \(partition) that this version does not know: run a newer one"
        )
    }

    /// Timeout for reading back what was written.
    private static let readBackMs = 10_000

    /// Ends the epoch in a partition, if it has not ended there yet, and reads the end back. Another operator may have
    /// written an `end` first, so `found` has the next epoch.
    func end(_ partition: Int, next: Epoch) throws {
        guard let log, found[partition].end == nil else { return }
        let known = found[partition]
        let append = try BulkAppend(log)
        let barrier = LogAppend(
            key: Array(StreamName.barrierKey.utf8),
            value: Barrier.end(next).value,
            witness: known.last
        )
        try append.add(barrier, to: partition)
        try append.finish()
        for _ in 0..<Self.readBackMs / 20 {
            found[partition] = try search(
                partition,
                of: log,
                known,
                from: max(0, known.bounds.last + 1)
            )
            if let end = found[partition].end {
                return try progress(EpochProgress(step: .ending, partition: partition, seq: end.seq, last: end.seq))
            }
            usleep(20_000)
        }
        throw LogError(.logUnavailable, "the end of partition \(partition) was written, and cannot be read back")
    }

    // MARK: State

    /// Throws if a partition was trimmed and no archive holds the trimmed records: its state cannot be obtained then.
    func checkThatItIsWhole() throws {
        guard archive == nil else { return }
        for (partition, found) in found.enumerated() where found.bounds.first > 0 {
            throw Self.trimmed(partition, first: found.bounds.first)
        }
    }

    private static func trimmed(_ partition: Int, first: Seq) -> LogError {
        LogError(
            .truncated,
            "partition \(partition) begins at seq \(first): say with --from-snapshot where its state is",
            seq: first
        )
    }

    /// Returns the state of a partition at the end of the epoch, or now if the epoch has not ended, and what is
    /// missing.
    func state(
        of partition: Int
    ) throws -> (fold: PartitionFold, loss: EpochReport.Loss?, damage: [EpochReport.Damage]) {
        var (fold, log, loss) = try start(of: partition)
        guard let log else { return (fold, loss, []) }
        let last = found[partition].end?.seq ?? found[partition].bounds.last
        var damage: [EpochReport.Damage] = []
        let pass = { (range: DamagedRange) in
            damage.append(EpochReport.Damage(range: range, isInSeeds: fold.phase == .seeds && self.current.number > 0))
            // Every fold treats seqs that cannot be read as void.
            fold.skip(to: range.seqs.upperBound + 1)
        }
        let gaps = fold.gaps
        try log.scan(partition, from: fold.next, to: last, passing: skipsDamage ? pass : nil) { batch in
            for entry in batch.entries {
                let record = batch.withRecord(entry) { key, value in fold.read(key: key, value: value, seq: entry.seq) }
                if case .unknownBarrier = record { throw Self.unknownBarrier(at: entry.seq, of: partition) }
            }
            // The last offsets may be holes.
            fold.skip(to: batch.seqs.upperBound)
            try progress(
                EpochProgress(step: .folding, partition: partition, seq: batch.seqs.upperBound - 1, last: last)
            )
        }
        // The fold of a snapshot may have continued after the end of the epoch, where every record is void.
        guard fold.next > last else {
            throw LogError(
                .internal,
                "partition \(partition) was folded up to seq \(fold.next - 1), expected is its end at \(last)"
            )
        }
        if !damage.isEmpty { damage[damage.count - 1].gaps = fold.gaps - gaps }
        return (fold, nil, damage)
    }

    /// Returns the state at which a partition's fold starts, and the log in which it continues. Log nil: the fold ends
    /// there, and the loss says what is missing.
    private func start(
        of partition: Int
    ) throws -> (fold: PartitionFold, log: (any EventLog)?, loss: EpochReport.Loss?) {
        let archived = try archive?.state(of: partition)
        guard let log else { return rest(of: partition, archived, absence) }
        let bounds = found[partition].bounds
        if let archived {
            if let reason = try disagreement(archived, partition, log, bounds) {
                return rest(of: partition, archived, reason)
            }
            return (archived.fold, log, nil)
        }
        if bounds.first <= 0 {
            return (PartitionFold(partition: partition, of: current.partitions, epoch: current.epoch), log, nil)
        }
        guard archive != nil else { throw Self.trimmed(partition, first: bounds.first) }
        return rest(of: partition, nil, "the log begins at seq \(bounds.first), and no snapshot was found")
    }

    /// Returns why the log does not continue where a snapshot ends; nil: it continues there.
    private func disagreement(
        _ archived: ArchivedState,
        _ partition: Int,
        _ log: any EventLog,
        _ bounds: LogBounds
    ) throws -> String? {
        let next = archived.fold.next
        if next > bounds.last + 1 {
            return "the log ends at seq \(bounds.last), before the snapshot: it was rolled back"
        }
        if bounds.first > next { return "the log was trimmed up to seq \(bounds.first), behind the snapshot" }
        guard let last = archived.last, last.seq >= max(0, bounds.first) else { return nil }
        let batch: RecordBatch
        do throws(LogError) {
            batch = try log.read(partition, from: last.seq, to: last.seq, bytes: 1)
        } catch {
            // A record that cannot be read cannot be compared.
            guard skipsDamage, error.code == .damaged else { throw error }
            return nil
        }
        guard batch.entry(at: last.seq).map({ batch.witness(of: $0) }) != last else { return nil }
        return "the log holds another record at seq \(last.seq) than was folded: it was rolled back and written again"
    }

    /// Returns the state of the snapshot alone, and what is missing after it.
    private func rest(
        of partition: Int,
        _ archived: ArchivedState?,
        _ reason: String
    ) -> (fold: PartitionFold, log: (any EventLog)?, loss: EpochReport.Loss?) {
        let fold =
            archived?.fold
            ?? PartitionFold(partition: partition, of: current.partitions, epoch: current.epoch)
        // The snapshot includes the end of the epoch, so nothing can be missing.
        if case .ended = fold.phase { return (fold, nil, nil) }
        let seq = fold.next - 1
        let end =
            log == nil ? announced[partition] : found[partition].end.map { $0.seq - 1 } ?? found[partition].bounds.last
        let loss = EpochReport.Loss(
            partition: partition,
            seq: seq,
            end: end.flatMap { $0 > seq ? $0 : nil },
            reason: ([reason] + (archived?.unread ?? [])).joined(separator: "; ")
        )
        return (fold, nil, loss)
    }
}

extension LogStore {
    /// Opens a log, or returns why that fails: `damaged` if the log does not exist.
    func find(_ epoch: Epoch) -> Result<any EventLog, LogError> {
        do throws(LogError) {
            return .success(try open(epoch))
        } catch {
            return .failure(error)
        }
    }
}
