import ReelCore
import ReelLog

extension Command {
    /// The log, as it is.
    static let dump = Command(
        "dump",
        "print the records of a log as lines of JSON",
        about: """
            One line a record, {"partition","seq","key","value","epoch"}, the value as a string, by partition and seq,
            up to the end that the log has now. A seq at which Kafka has no record is a line with "empty":true in place
            of key and value. Nodes may go on meanwhile. With --stream those of one stream, the barriers of its
            partition, and all seeds there, which count only in one unbroken row. Who reads a log in a file takes turns
            with those who write it, so this user must be able to write the file and its folder; where nobody can, dump
            a copy. A record that is damaged ends the dump with exit code 4. With --skip-damaged all other records are
            printed, and on standard error a line for each range of seqs that cannot be read; the exit code is 4 then,
            too.
            """,
        settings: [
            LogArguments.log, KafkaArguments.properties, LogArguments.logFolder, NodeArguments.epoch, stream, partition,
            after, skipDamaged,
        ],
        examples: [
            Example("reel dump > log.jsonl", "the whole log of ./reel-data"),
            Example("reel dump --log sqlite:log.sqlite --stream todo", "what the state of one stream follows from"),
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

    private static let stream = Setting<String?>.text("stream", "NAME", "the stream that is meant")
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
        "print what follows this seq; -1 is all that the log still has"
    )
    /// Also a setting of `epoch new`.
    static let skipDamaged = Setting<Bool>.flag(
        "skip-damaged",
        "pass the records that cannot be read, and list their seqs"
    )

    /// How much is read at once, in bytes.
    private static let chunk = 4 << 20

    /// Prints a partition, and returns what of it was passed because it cannot be read.
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
            // What was trimmed meanwhile is not empty.
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
