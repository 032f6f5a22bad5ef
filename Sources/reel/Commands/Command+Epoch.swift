import Glibc
import ReelCore
import ReelKafka
import ReelLog
import ReelSnapshot

extension Command {
    /// The next log of a deployment.
    static let epochNew = Command(
        "epoch new",
        "end the log's epoch, and begin the next one with its state",
        about: """
            Ends the log's epoch, writes the state of all its streams as the first records of a new log, reads that
            back and compares, and makes the new log the current one. Meanwhile publishes are refused; then running
            nodes go over by themselves, and clients keep what they had queued. Interrupted at any point it can be run
            again and goes on. It is how a log gets another number of partitions, and how a deployment goes on where
            its log was lost: then --from-snapshot says where its state is, and what is lost is printed. Records that
            are damaged stop it; with --skip-damaged it goes on without them, and prints which seqs of which partition
            that are. Together with --from-snapshot only what the snapshots do not hold is lost. See
            docs/operations/epochs.md.
            """,
        settings: [
            LogArguments.log, KafkaArguments.properties, LogArguments.logFolder,
            LogArguments.partitions.saying("how many partitions the new log gets; else as many as the old one"),
            replication, fromSnapshot, skipDamaged, CommonSettings.dryRun,
        ],
        examples: [
            Example("reel epoch new --dry-run", "what it would do with the log in ./reel-data, and how long it takes"),
            Example("reel epoch new --partitions 16", "the same state, in sixteen partitions"),
            Example(
                "reel epoch new --log kafka:a:9092 --from-snapshot /var/lib/reel",
                "after the topic was lost: from the data folder of a snapshot node"
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
                "there is no log at `\(LogArguments.name(options))`; say with --log or --data where it is, or, if it is"
                    + " lost, with --from-snapshot where its state is"
            )
        }
        let archive = folders.isEmpty ? nil : try SnapshotArchive(folders: folders, of: try store.current())
        if folders.isEmpty { try refuseToForget(options, store) }
        let start = ContinuousClock.now
        var said = start
        let change = EpochChange(
            store,
            partitions: options[LogArguments.partitions],
            archive: archive,
            skipsDamage: options[skipDamaged]
        ) { progress in
            guard ContinuousClock.now - said > .seconds(1) else { return }
            said = ContinuousClock.now
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
        if options[CommonSettings.dryRun] { try tell(try change.rehearse()) } else { try change.run(tell) }
        if !options[CommonSettings.dryRun], let brokers = store as? KafkaLogStore {
            warnOfFewCopies(brokers, options, console)
        }
        try console.print("took \(Int((ContinuousClock.now - start) / .milliseconds(1))) ms")
        return .done
    }

    /// A log that has lost what a snapshot folder beside it holds is not continued without a word.
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
        "the data folder of a snapshot node, or a copy, that the state begins with"
    )
}

extension EpochReport {
    /// What an operator is told.
    func lines(isRehearsal: Bool) -> [String] {
        var lines = ["old epoch \(old.epoch): \(old.partitions) partitions"]
        if isRehearsal {
            let name = new.epoch == Epoch(0) ? "the new epoch" : "the new epoch \(new.epoch), which was begun before,"
            lines.append("\(name) would have \(new.partitions) partitions; nothing was written")
        } else {
            lines.append("new epoch \(new.epoch): \(new.partitions) partitions, log number \(new.number)")
        }
        lines.append(
            deploymentIsKnown
                ? "deployment \(new.deployment)"
                : "deployment \(new.deployment), the epoch of the log that was lost: the snapshots name no other;"
                    + " devices that have met another one must be told to adopt it"
        )
        lines.append(
            wasWritten
                ? "its state had been written and read back by an earlier run"
                    + (lossesAreKnown ? "" : "; if that had --from-snapshot, it alone could say what is lost")
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
                "partition \(range.partition); \(gaps) later events count for nothing: an event of their site before"
                    + " them is missing"
            )
        }
        return lines
    }
}
