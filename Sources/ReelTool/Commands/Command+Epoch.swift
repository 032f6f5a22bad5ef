import Glibc
import ReelCore
import ReelKafka
import ReelLog
import ReelSnapshot

extension Command {
    /// `reel epoch new`: the next log of a deployment.
    static let epochNew = Command(
        "epoch new",
        "end the log's epoch, and begin the next one with its state",
        about: """
            Ends the log's epoch and writes the state of all its streams as the first records of a new log. Then it
            reads them back, compares, and makes the new log the current one. Publishes are refused meanwhile. Then
            running nodes change to the new log, and clients keep their queues. If the command is interrupted, run it
            again: it continues.

            Use it to change the number of partitions, or to continue a deployment whose log was lost: name the folder
            of the state with --from-snapshot, and the command prints what is lost. Damaged records stop the command.
            With --skip-damaged it skips them and prints their partitions and seqs. With both, only records that the
            snapshots do not contain are lost. See docs/operations/epochs.md.
            """,
        settings: [
            LogArguments.log, KafkaArguments.properties, LogArguments.logFolder,
            LogArguments.partitions.saying("number of partitions of the new log; default: as many as the old one"),
            replication, fromSnapshot, skipDamaged, CommonSettings.dryRun,
        ],
        examples: [
            Example("reel epoch new --dry-run", "show the effect on the log in ./reel-data, and the duration"),
            Example("reel epoch new --partitions 16", "the same state, in 16 partitions"),
            Example(
                "reel epoch new --log kafka:a:9092 --from-snapshot /var/lib/reel",
                "the topic was lost: continue with the state in the data folder of a snapshot node"
            ),
        ]
    ) { options, console in
        let store = try LogArguments.store(options, replicas: options[replication], console)
        defer { store.close() }
        let folders = options[fromSnapshot]
        for folder in folders { try checkThatItIsThere(folder) }
        if folders.isEmpty, try store.current() == nil {
            throw CommandError(
                .failed,
                "there is no log at `\(LogArguments.name(options))`; name its place with --log or --data, or, if it is"
                    + " lost, the place of its state with --from-snapshot"
            )
        }
        let archive = folders.isEmpty ? nil : try SnapshotArchive(folders: folders, of: try store.current())
        if folders.isEmpty { try refuseToForget(options, store) }
        let start = ContinuousClock.now
        var printedAt = start
        let change = EpochChange(
            store,
            partitions: options[LogArguments.partitions],
            archive: archive,
            skipsDamage: options[skipDamaged]
        ) { progress in
            guard ContinuousClock.now - printedAt > .seconds(1) else { return }
            printedAt = ContinuousClock.now
            console.note(
                "\(progress.step.rawValue): partition \(progress.partition), seq \(progress.seq) of \(progress.last)"
            )
        }
        func tell(_ report: EpochReport) throws {
            if !options[CommonSettings.dryRun] {
                let detail = "epoch \(report.old.epoch) ends, epoch \(report.new.epoch) begins"
                console.audit("epoch new", log: LogArguments.name(options), detail)
            }
            try console.print("log \(LogArguments.name(options))")
            for line in report.lines(isRehearsal: options[CommonSettings.dryRun]) { try console.print(line) }
        }
        if options[CommonSettings.dryRun] { try tell(try change.plan()) } else { try change.run(tell) }
        if !options[CommonSettings.dryRun], let brokers = store as? KafkaLogStore {
            warnOfFewCopies(brokers, options, console)
        }
        try console.print("took \(Int((ContinuousClock.now - start) / .milliseconds(1))) ms")
        return .done
    }

    /// Refuses to continue a log that has lost records which a snapshot folder beside it has folded.
    ///
    /// - Throws: a `CommandError` with exit code 1 that names the folder and the seqs.
    private static func refuseToForget(_ options: Options, _ store: any LogStore) throws {
        guard let current = try store.current() else { return }
        for folder in Set(try LogArguments.snapshotFolders(options)).sorted() {
            guard let archive = try? SnapshotArchive(folders: [folder], of: current) else { continue }
            let folded = (0..<archive.partitions).map { archive.furthest($0) ?? .none }
            let log = try store.open(current.epoch)
            defer { log.close() }
            for (partition, seq) in folded.enumerated() where partition < log.partitions {
                let last = try log.bounds(partition).last
                guard seq > last else { continue }
                throw CommandError(
                    .failed,
                    "the log ends at seq \(last) of partition \(partition), but `\(folder)` has folded it to seq"
                        + " \(seq): the log has lost records. Continue with that state by `--from-snapshot"
                        + " \(folder)`, or move the folder away to continue without it"
                )
            }
        }
    }

    private static func checkThatItIsThere(_ folder: String) throws(CommandError) {
        var status = stat()
        guard stat(folder, &status) == 0 else {
            throw CommandError(
                .failed,
                "--from-snapshot is `\(folder)`: \(String(cString: strerror(errno))); expected is the data folder of a"
                    + " snapshot node, or a copy"
            )
        }
    }

    private static let fromSnapshot = Setting<[String]>.texts(
        "from-snapshot",
        "DIR",
        "take the state from this data folder of a snapshot node, or a copy of it"
    )
}

extension EpochReport {
    /// Returns the lines that the command prints. `isRehearsal`: true for a dry run.
    func lines(isRehearsal: Bool) -> [String] {
        var lines = ["old epoch \(old.epoch): \(old.partitions) partitions"]
        if isRehearsal {
            let name = new.epoch == Epoch(0) ? "the new epoch" : "the new epoch \(new.epoch), begun by an earlier run,"
            lines.append("\(name) would have \(new.partitions) partitions; nothing was written")
        } else {
            lines.append("new epoch \(new.epoch): \(new.partitions) partitions, log number \(new.number)")
        }
        lines.append(
            deploymentIsKnown
                ? "deployment \(new.deployment)"
                : "deployment \(new.deployment), the epoch of the lost log, because the snapshots do not name one;"
                    + " devices that know another deployment must adopt it"
        )
        lines.append(
            wasWritten
                ? "its state had been written and read back by an earlier run"
                    + (lossesAreKnown ? "" : "; if it had --from-snapshot, only that run could report the losses")
                : "\(streams) streams, \(objects) objects, \(tombstones) tombstones, \(sites) sites, \(bytes) bytes"
                    + " of seeds; \(events) events folded"
        )
        return lines + losses.map(\.line) + damage.flatMap(\.lines)
    }
}

extension EpochReport.Loss {
    fileprivate var line: String {
        let state = seq < 0 ? "begins empty" : "begins with the state of seq \(seq)"
        let lost =
            end.map { "lost: seqs \(seq + 1) to \($0), and what followed" } ?? "lost: what followed, if anything did"
        return "partition \(partition) \(state); \(lost); \(reason)"
    }
}

extension EpochReport.Damage {
    fileprivate var lines: [String] {
        var line = "partition \(range.partition); lost: seqs \(range.seqs.lowerBound) to \(range.seqs.upperBound)"
        if isInSeeds { line += ", and the rest of the state that the epoch begins with" }
        var lines = [line + "; \(range.reason)"]
        if gaps > 0 {
            lines.append(
                "partition \(range.partition); \(gaps) later events have no effect: an earlier event of their site is"
                    + " missing"
            )
        }
        return lines
    }
}
