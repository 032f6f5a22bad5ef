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
            a copy.
            """,
        settings: [
            LogArguments.log, KafkaArguments.properties, LogArguments.logFolder, NodeArguments.epoch, stream, partition,
            after,
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
                throw Complaint(
                    .usage,
                    "--partition is \(partition); expected is \(wanted.lowerBound) to \(wanted.upperBound - 1)"
                )
            }
            wanted = partition..<partition + 1
        }
        for partition in wanted {
            try dump(partition, of: log, after: Seq(options[after]), only: key, to: console)
        }
        return .done
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

    /// How much is read at once, in bytes.
    private static let chunk = 4 << 20

    private static func dump(
        _ partition: Int,
        of log: any EventLog,
        after: Seq,
        only key: [UInt8]?,
        to console: Console
    ) throws {
        let bounds = try log.bounds(partition)
        var next = max(after, bounds.first - 1) + 1
        var lines: [UInt8] = []
        while bounds.last > .none, next <= bounds.last {
            let batch = try log.read(partition, from: next, to: bounds.last, bytes: chunk)
            guard batch.seqs.upperBound > next else {
                throw Complaint(.badData, "partition \(partition) cannot be read from seq \(next) on")
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
    }
}
