internal import ReelCore

/// A change of epoch: ends the current log of a deployment, and starts the next one with the state of the old one. It
/// can also change the number of partitions, or replace a log that is lost.
///
/// The steps are:
///
/// - Create the new log.
/// - Write `end` into partition 0 of the old log. The first `end` there decides which epoch follows.
/// - Write `end` into the other partitions.
/// - Fold the old log, and write its state as seeds into the new log.
/// - Read the seeds back, fold them, and compare.
/// - Write `open` after the seeds.
/// - Make the new log the current one. Until this step nothing refers to the new log.
///
/// Each step finds what an interrupted run, or another operator's run, has left, and continues from there.
///
/// Everything blocks. One folded partition at a time is held in memory.
public struct EpochChange {
    private let store: any LogStore
    private let partitions: Int?
    private let archive: (any StateArchive)?
    private let skipsDamage: Bool
    private let progress: (EpochProgress) throws -> Void

    /// Creates a change of epoch. Nothing happens before `run`.
    ///
    /// - Parameters:
    ///   - store: The logs of the deployment.
    ///   - partitions: The number of partitions of the new log; nil: as many as the old one has.
    ///   - archive: States at which the fold of the old log starts; nil: it starts at the first record.
    ///   - skipsDamage: If true, seqs of the old log that cannot be read are skipped, and the report lists them.
    ///   - progress: Called repeatedly. An error that it throws interrupts the change.
    public init(
        _ store: any LogStore,
        partitions: Int? = nil,
        archive: (any StateArchive)? = nil,
        skipsDamage: Bool = false,
        progress: @escaping (EpochProgress) throws -> Void = { _ in }
    ) {
        self.store = store
        self.partitions = partitions
        self.archive = archive
        self.skipsDamage = skipsDamage
        self.progress = progress
    }

    /// Returns the report of what a run would do now, and writes nothing. The report's new epoch is 0 if it is not
    /// decided yet.
    public func plan() throws -> EpochReport {
        let old = try SourceLog(store, archive, skipsDamage: skipsDamage, progress)
        defer { old.close() }
        try old.look()
        let new = CurrentLog(
            epoch: old.next ?? Epoch(0),
            partitions: partitions ?? old.current.partitions,
            number: old.current.number + 1,
            deployment: old.current.deployment
        )
        var report = EpochReport(old: old.current, new: new, deploymentIsKnown: old.deploymentIsKnown)
        for partition in 0..<old.current.partitions { _ = try sums(of: partition, old, &report) }
        return report
    }

    /// Makes the change, or continues one that was started. After an error it can be run again.
    ///
    /// - Parameter onReport: Called with the report before the new log becomes the current one. So all losses are
    ///   reported even if the last step fails or its answer is lost.
    /// - Returns: The report.
    @discardableResult
    public func run(_ onReport: (EpochReport) throws -> Void = { _ in }) throws -> EpochReport {
        let old = try SourceLog(store, archive, skipsDamage: skipsDamage, progress)
        defer { old.close() }
        try old.look()
        let new = try begin(old)
        defer { new.close() }
        old.heard(try new.nodes())
        for partition in 0..<old.current.partitions where old.isThere { try old.end(partition, next: new.epoch) }

        let next = CurrentLog(
            epoch: new.epoch,
            partitions: new.partitions,
            number: old.current.number + 1,
            deployment: old.current.deployment
        )
        var report = EpochReport(old: old.current, new: next, deploymentIsKnown: old.deploymentIsKnown)
        let seeds = TargetLog(new, progress)
        report.wasWritten = try seeds.isOpen()
        if report.wasWritten {
            try addLosses(old, seeds, &report)
        } else {
            let append = try BulkAppend(new)
            var sums: [StreamName: SeedSum] = [:]
            for partition in 0..<old.current.partitions {
                let found = try self.sums(of: partition, old, &report) { stream, value in
                    let record = LogAppend(key: stream.key, value: value)
                    try append.add(record, to: stream.partition(of: new.partitions))
                }
                sums.merge(found) { first, _ in first }
            }
            try append.finish()
            try seeds.verify(sums)
        }
        try seeds.open()
        try onReport(report)
        try advance(to: next)
        return report
    }

    /// Adds the losses of a state that an earlier run has written, because that run may have ended before it could
    /// report them. The losses can be determined only with the snapshots from which that run wrote the state.
    private func addLosses(_ old: SourceLog, _ seeds: TargetLog, _ report: inout EpochReport) throws {
        guard archive != nil || skipsDamage else { return report.lossesAreKnown = false }
        var (found, sums) = (report, [StreamName: SeedSum]())
        for partition in 0..<old.current.partitions {
            sums.merge(try self.sums(of: partition, old, &found)) { first, _ in first }
        }
        do {
            try seeds.verify(sums)
        } catch let error as LogError where error.code == .damaged {
            throw LogError(
                .badRequest,
                "an earlier run has written the state of \(report.new.epoch), and not of these snapshots: run it once"
                    + " more with those that it was begun with, or without any to finish it"
            )
        }
        report.losses = found.losses
        report.damage = found.damage
    }

    /// Returns the new log, once partition 0 of the old log names it.
    private func begin(_ old: SourceLog) throws -> any EventLog {
        if let next = old.next { return try continued(next, old) }
        try old.checkThatItIsWhole()
        // The new log is created first: if that fails, the old log must not end.
        let mine = Epoch.random()
        try store.create(mine, partitions: partitions ?? old.current.partitions)
        if old.isThere { try old.end(0, next: mine) }
        guard let next = old.next, next != mine else { return try store.open(mine) }
        return try continued(next, old)
    }

    /// Returns the new log that another operator or an earlier run has started.
    private func continued(_ next: Epoch, _ old: SourceLog) throws -> any EventLog {
        let log = try open(next, behind: old.current.epoch)
        if let partitions, partitions != log.partitions {
            log.close()
            throw LogError(
                .badRequest,
                "the epoch \(next) was begun with \(log.partitions) partitions, expected \(partitions): run it once"
                    + " more without a number to finish that"
            )
        }
        return log
    }

    private func open(_ next: Epoch, behind old: Epoch) throws -> any EventLog {
        switch store.find(next) {
        case .success(let log): return log
        case .failure(let error):
            guard error.code == .damaged else { throw error }
            // The next log was created before the old one named it, so clients may have used its name. No other log may
            // take it.
            throw LogError(
                .damaged,
                "the log \(old) has ended, and continues in \(next), which is missing: bring that back; if it is lost,"
                    + " put the log \(old) away as well, and say with --from-snapshot where its state is"
                    + " (\(error.message))"
            )
        }
    }

    /// Folds a partition of the old log, and calls `body` with each seed of its streams. Returns the sums of the seeds
    /// by stream.
    private func sums(
        of partition: Int,
        _ old: SourceLog,
        _ report: inout EpochReport,
        _ body: (StreamName, [UInt8]) throws -> Void = { _, _ in }
    ) throws -> [StreamName: SeedSum] {
        let (state, loss, damage) = try old.state(of: partition)
        if let loss { report.losses.append(loss) }
        report.damage += damage
        report.events += state.events
        var sums: [StreamName: SeedSum] = [:]
        for (stream, fold) in state.streams {
            var sum = SeedSum()
            try fold.forEachSeed { kind, value in
                sum.add(kind, value)
                try body(stream, value)
            }
            sums[stream] = sum
            report.add(sum)
        }
        return sums
    }

    private func advance(to next: CurrentLog) throws {
        do {
            try store.advance(to: next)
        } catch  where error.code == .conflict {
            // Another operator may have finished the same change.
            guard try store.current()?.epoch == next.epoch else { throw error }
        }
    }
}
