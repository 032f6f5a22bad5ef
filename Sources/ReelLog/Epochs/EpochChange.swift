internal import ReelCore

/// Ends the epoch of a deployment's log, and begins the next one with the state of the old: also to have another number
/// of partitions, or where the old log is lost.
///
/// The steps are: make the new log; write `end` into partition 0 of the old one, where the first `end` decides what the
/// new log is called; write `end` into the others; fold the old log, and write what it comes to as seeds into the new
/// one; read these back, fold them, and compare; write `open` behind them; make the new log the current one. Until the
/// last step nothing refers to the new log. Each step finds what an interrupted run, or another operator's, has left,
/// and goes on from there.
///
/// Everything blocks. One partition is held folded in memory at a time.
public struct EpochChange {
    private let store: any LogStore
    private let partitions: Int?
    private let archive: (any StateArchive)?
    private let skipsDamage: Bool
    private let progress: (EpochProgress) throws -> Void

    /// A change to `partitions` partitions, or as many as there are (nil). With an archive the fold begins with its
    /// states. With `skipsDamage` seqs of the old log that cannot be read are passed, and the report lists them.
    /// `progress` is called again and again; what it throws interrupts the change.
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

    /// Finds out what a run would do, as of now, and writes nothing. The report's new epoch is 0 where it has not been
    /// decided.
    public func rehearse() throws -> EpochReport {
        let old = try OldLog(store, archive, skipsDamage: skipsDamage, progress)
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

    /// Does it, or goes on with what was begun. After an error it can be run again. `told` gets the report before the
    /// new log becomes the current one: what is lost has been said then, whatever happens to the last step's answer.
    @discardableResult
    public func run(_ told: (EpochReport) throws -> Void = { _ in }) throws -> EpochReport {
        let old = try OldLog(store, archive, skipsDamage: skipsDamage, progress)
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
        let seeds = SeededLog(new, progress)
        report.wasWritten = try seeds.isOpen()
        if report.wasWritten {
            try tellLosses(old, seeds, &report)
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
        try told(report)
        try advance(to: next)
        return report
    }

    /// Says what is lost by a state that an earlier run has written: it may have died before it could. Only those
    /// snapshots tell that it was written of.
    private func tellLosses(_ old: OldLog, _ seeds: SeededLog, _ report: inout EpochReport) throws {
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

    /// The new log, once partition 0 of the old one names it.
    private func begin(_ old: OldLog) throws -> any EventLog {
        if let next = old.next { return try continued(next, old) }
        try old.checkThatItIsWhole()
        // It is made first: where that is not possible the old log must not end.
        let mine = Epoch.random()
        try store.create(mine, partitions: partitions ?? old.current.partitions)
        if old.isThere { try old.end(0, next: mine) }
        guard let next = old.next, next != mine else { return try store.open(mine) }
        return try continued(next, old)
    }

    /// The new log that somebody else, or an earlier run, has begun.
    private func continued(_ next: Epoch, _ old: OldLog) throws -> any EventLog {
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
            // It was there before it was named, so its name may have been used: nothing else may be found under it.
            throw LogError(
                .damaged,
                "the log \(old) has ended, and goes on in \(next), which is missing: bring that back; if it is lost,"
                    + " put the log \(old) away as well, and say with --from-snapshot where its state is"
                    + " (\(error.message))"
            )
        }
    }

    /// Folds a partition of the old log, and hands out the seeds of its streams.
    private func sums(
        of partition: Int,
        _ old: OldLog,
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
