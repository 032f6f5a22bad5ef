import ReelCheck
import ReelCore

extension Command {
    /// Records through the fold, without any node.
    static let fold = Command(
        "fold",
        "fold the records of one stream, as `dump` prints them, and print the snapshot",
        about: """
            Reads lines of JSON, {"partition","seq","key","value","epoch"}, from FILE or standard input, in the order of
            seq: the records of one stream with the barriers between them, or of a whole log. A line may do without
            its epoch. No node is asked. Prints the lines of the snapshot, behind the outcome of each record if that is
            asked for.
            """,
        operands: [Operand("FILE", .optional)],
        settings: [
            stream, outcomes, judged, NodeArguments.epoch,
            LogArguments.partitions.saying("how many partitions the log has; else the fewest that fit the records"),
        ],
        examples: [
            Example("reel dump | reel fold --stream todo", "the state of one stream of a log"),
            Example("reel fold --outcomes events.jsonl", "what became of each event, then the state"),
            Example("reel fold --check events.jsonl", "the same, compared with a second, naive fold"),
        ]
    ) { options, console in
        let all = try LogLine.read(try InputFile.read(options.operands.first ?? "-"))
        let epoch = try epochMeant(by: all, wanted: options[NodeArguments.epoch])
        let lines = all.filter { $0.epoch == nil || $0.epoch == epoch }
        let input = try StreamInput(lines, stream: options[stream], partitions: options[LogArguments.partitions])
        var folding = StreamFolding(input.stream, partition: input.partition, of: input.partitions, epoch: epoch)
        var judge: Judge? = options[judged] ? Judge(input, epoch: epoch) : nil
        var lostSeeds = 0
        for line in input.lines {
            let outcome = line.key.withUnsafeBytes { key in
                line.value.withUnsafeBytes { folding.fold(key: key, value: $0, seq: line.seq) }
            }
            try judge?.compare(line, outcome)
            if outcome == .void, line.isSeed {
                lostSeeds += 1
            }
            if let outcome, options[outcomes] {
                try console.print(#"{"seq":\#(line.seq),"outcome":"\#(outcome)"}"#)
            }
        }
        if lostSeeds > 0 {
            console.note(
                "reel: warning: \(counted(lostSeeds, "seed")) of the stream count for nothing, because others of the"
                    + " row that an epoch begins with are missing; `reel dump --stream` prints them all"
            )
        }
        guard let snapshot = try folding.snapshot() else {
            throw CommandError(.badData, "the records end inside the seeds of an epoch, where there is no snapshot")
        }
        try console.write(snapshot)
        try judge?.compare(snapshot)
        return .done
    }

    /// The epoch that is meant: the one wanted, else the only one that the lines name.
    private static func epochMeant(by lines: [LogLine], wanted: Epoch?) throws(CommandError) -> Epoch {
        if let wanted { return wanted }
        let named = Set(lines.compactMap(\.epoch)).sorted { $0.value < $1.value }
        guard named.count <= 1 else {
            let names = named.map(\.description).joined(separator: ", ")
            throw CommandError(
                .usage,
                "the input holds records of the epochs \(names); say with --epoch which is meant"
            )
        }
        return named.first ?? Epoch(0)
    }

    private static let stream = Setting<String?>.text("stream", "NAME", "the stream that is meant")
    private static let outcomes = Setting<Bool>.flag("outcomes", #"print {"seq","outcome"} for each record first"#)
    private static let judged = Setting<Bool>.flag("check", "compare with the naive fold, and fail on a difference")
}

/// The records of one partition, in order, and the stream that is meant.
private struct StreamInput {
    let stream: StreamName
    let partition: Int
    let partitions: Int
    let lines: [LogLine]

    /// Finds the stream and its partition. A partition count that nobody said is the smallest that puts the stream
    /// where it lies, and most of what lies beside it.
    init(_ lines: [LogLine], stream name: String?, partitions: Int?) throws(CommandError) {
        var names = Self.names(lines)
        // A dump of one stream has all seeds of its partition.
        if names.count > 1, case let own = Self.names(lines.filter { !$0.isSeed }), !own.isEmpty { names = own }
        if let name {
            stream = try streamName(name)
        } else if let only = names.first, names.count == 1 {
            stream = only
        } else {
            let some = names.sorted().prefix(5).map(\.description).joined(separator: ", ")
            throw CommandError(
                .usage,
                names.isEmpty
                    ? "the input holds no stream's records; say with --stream which one is meant"
                    : "the input holds \(names.count) streams (\(some)); say with --stream which one is meant"
            )
        }
        let key = self.stream.key
        let found = Set(lines.filter { $0.key == key }.map(\.partition))
        if let partitions {
            (self.partitions, partition) = (partitions, self.stream.partition(of: partitions))
        } else {
            let place = found.min() ?? lines.first?.partition ?? 0
            let beside = Self.names(lines.filter { $0.partition == place }).sorted().prefix(64)
            guard let fitting = Self.partitions(putting: self.stream, and: beside, into: place), found.count <= 1 else {
                throw CommandError(
                    .badData,
                    "records of \(self.stream) lie in the partitions \(found.sorted()); say with --partitions how "
                        + "many the log has"
                )
            }
            (self.partitions, partition) = (fitting, place)
        }
        self.lines = lines.filter { [partition] in $0.partition == partition }
        for (line, next) in zip(self.lines, self.lines.dropFirst()) where next.seq <= line.seq {
            throw CommandError(.badData, "seq \(next.seq) follows \(line.seq); expected are ascending seqs")
        }
    }

    private static func names(_ lines: [LogLine]) -> Set<StreamName> {
        Set(lines.compactMap { $0.key.withUnsafeBytes { StreamName(bytes: $0) } })
    }

    private static func partitions(
        putting stream: StreamName,
        and others: some Collection<StreamName>,
        into partition: Int
    ) -> Int? {
        guard partition < LogArguments.partitionsMax else { return nil }
        let fitting = (partition + 1...LogArguments.partitionsMax).filter { stream.partition(of: $0) == partition }
        let counts = fitting.map { count in others.count { $0.partition(of: count) == partition } }
        return zip(fitting, counts).first { $0.1 == counts.max() }?.0
    }
}

/// The naive fold beside the real one.
private struct Judge {
    private var naive: NaiveFold
    private let stream: String

    init(_ input: StreamInput, epoch: Epoch) {
        naive = NaiveFold(epoch: epoch.description, partition: input.partition, of: input.partitions)
        stream = input.stream.description
    }

    /// Folds the record too; fails if it says something else of it.
    mutating func compare(_ line: LogLine, _ outcome: Outcome?) throws(CommandError) {
        let judgement = naive.apply(seq: line.seq, key: line.key, value: line.value)
        guard let outcome, judgement?.description != outcome.description else { return }
        throw CommandError(
            .failed,
            "seq \(line.seq): the fold says \(outcome), the naive fold \(judgement?.description ?? "nothing")"
        )
    }

    /// Fails if the snapshot means another state than the naive fold's.
    func compare(_ snapshot: [UInt8]) throws(CommandError) {
        let read: NaiveSnapshot
        do throws(Fault) {
            read = try NaiveSnapshot(snapshot)
        } catch {
            throw CommandError(.failed, "the snapshot cannot be read: \(error.reason)")
        }
        guard read.digest == read.declaredDigest, read.normalForm == naive.normalForm(of: stream) else {
            throw CommandError(.failed, "the snapshot is another than the naive fold's, with digest \(read.digest)")
        }
    }
}
