import ReelCore
import ReelLog

extension Command {
    /// `reel dump`: the records of a log.
    static let dump = Command(
        "dump",
        "print the records of a log as lines of JSON",
        about: """
            Prints a line for each record, {"partition","seq","key","value","epoch"}, with the value as a string, by
            partition and seq, up to the current end of the log. A seq at which Kafka has no record is a line with
            "empty":true instead of key and value. Nodes can run meanwhile.

            With --stream it prints the records of one stream, and the barriers and all seeds of its partition. Seeds
            are valid only as a complete row. A reader of a log file uses the locks of its writers, so this user needs
            write access to the file and its folder; without it, dump a copy.

            A damaged record ends the dump with exit code 4. With --skip-damaged all other records are printed, and a
            line on standard error for each range of seqs that cannot be read; the exit code is then also 4.
            """,
        settings: [
            LogArguments.log, KafkaArguments.properties, LogArguments.logFolder, NodeArguments.epoch, stream, partition,
            after, skipDamaged,
        ],
        examples: [
            Example("reel dump > log.jsonl", "the whole log of ./reel-data"),
            Example("reel dump --log sqlite:log.sqlite --stream todo", "all records that the state of a stream needs"),
        ]
    ) { options, console in
        let log = try LogArguments.open(options, epoch: options[NodeArguments.epoch], console)
        defer { log.close() }
        var (wanted, key) = (0..<log.partitions, [UInt8]?.none)
        if let name = options[stream] {
            let stream = try streamName(name)
            let partition = stream.partition(of: log.partitions)
            (wanted, key) = (partition..<partition + 1, stream.key)
        }
        if let partition = options[partition] {
            guard wanted.contains(partition) else {
                throw CommandError(
                    .usage,
                    "--partition is \(partition); expected is \(wanted.lowerBound) to \(wanted.upperBound - 1)"
                )
            }
            wanted = partition..<partition + 1
        }
        var damage: [DamagedRange] = []
        for partition in wanted {
            let found = try dump(
                partition,
                of: log,
                after: Seq(options[after]),
                only: key,
                skipsDamage: options[skipDamaged],
                to: console
            )
            for range in found {
                console.note(
                    "reel: partition \(range.partition), seqs \(range.seqs.lowerBound) to \(range.seqs.upperBound):"
                        + " \(range.reason)"
                )
            }
            damage += found
        }
        guard !damage.isEmpty else { return .done }
        let seqs = damage.reduce(0) { $0 + $1.seqs.count }
        console.note("reel: \(counted(seqs, "seq")) in \(counted(damage.count, "range")) cannot be read")
        return .badData
    }

    private static let stream = Setting<String?>.text("stream", "NAME", "name of the stream")
    private static let partition = Setting<Int?>.number(
        "partition",
        "K",
        0...LogArguments.partitionsMax - 1,
        "only this partition"
    )
    private static let after = Setting<Int>.number(
        "after",
        "SEQ",
        -1...Int(largestInteger),
        default: -1,
        "print what follows this seq; -1: all that the log has"
    )
    /// The setting `--skip-damaged`, of `dump` and `epoch new`.
    static let skipDamaged = Setting<Bool>.flag(
        "skip-damaged",
        "skip records that cannot be read, and print their seqs"
    )

    /// The size of one read of the log, in bytes.
    private static let chunk = 4 << 20

    /// Prints the records of a partition. Returns the ranges that were skipped because they cannot be read.
    ///
    /// - Parameters:
    ///   - partition: the number of the partition.
    ///   - log: the log.
    ///   - after: the seq before the first one to print.
    ///   - key: the key of the only stream to print; nil for all records.
    ///   - skipsDamage: true to skip records that cannot be read; otherwise they are an error.
    ///   - console: the output.
    private static func dump(
        _ partition: Int,
        of log: any EventLog,
        after: Seq,
        only key: [UInt8]?,
        skipsDamage: Bool,
        to console: Console
    ) throws -> [DamagedRange] {
        let bounds = skipsDamage ? try log.boundsPassingDamage(partition) : try log.bounds(partition)
        var damage: [DamagedRange] = []
        var next = max(after, bounds.first - 1) + 1
        var lines: [UInt8] = []
        while bounds.last > .none, next <= bounds.last {
            let batch: RecordBatch
            do throws(LogError) {
                batch = try log.read(partition, from: next, to: bounds.last, bytes: chunk)
            } catch {
                guard skipsDamage else { throw error }
                damage.append(try log.damage(partition, from: next, to: bounds.last, error))
                next = damage[damage.count - 1].seqs.upperBound + 1
                continue
            }
            guard batch.seqs.upperBound > next else {
                throw CommandError(.badData, "partition \(partition) cannot be read from seq \(next) on")
            }
            // Records that the log has trimmed meanwhile are not seqs without a record.
            next = max(next, batch.seqs.lowerBound)
            lines.removeAll(keepingCapacity: true)
            for entry in batch.entries {
                if key == nil {
                    while next < entry.seq {
                        LogLine.writeEmpty(partition: partition, seq: next, epoch: log.epoch, to: &lines)
                        next += 1
                    }
                    next = entry.seq + 1
                }
                batch.withRecord(entry) { found, value in
                    if let key, !found.elementsEqual(key), !StreamName.barrierKey.utf8.elementsEqual(found),
                        !value.suffix(LogLine.seedEnd.count).elementsEqual(LogLine.seedEnd)
                    {
                        return
                    }
                    LogLine.write(
                        partition: partition,
                        seq: entry.seq,
                        key: found,
                        value: value,
                        epoch: log.epoch,
                        to: &lines
                    )
                }
            }
            while key == nil, next < batch.seqs.upperBound {
                LogLine.writeEmpty(partition: partition, seq: next, epoch: log.epoch, to: &lines)
                next += 1
            }
            try console.write(lines)
            next = batch.seqs.upperBound
        }
        return damage
    }
}
