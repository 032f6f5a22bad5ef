import ReelCheck
import ReelCore

extension Command {
    /// `reel fold`: the fold of records in a file, without a node.
    static let fold = Command(
        "fold",
        "fold the records of one stream, as `dump` prints them, and print the snapshot",
        about: """
            Reads lines of JSON, {"partition","seq","key","value","epoch"}, from FILE or standard input, in the order of
            seqs: the records of one stream with the barriers between them, or of a whole log. The member `epoch` is
            optional. No node is asked. Prints the lines of the snapshot; with --outcomes, first the outcome of each
            record.
            """,
        operands: [Operand("FILE", .optional)],
        settings: [
            stream, outcomes, isChecked, NodeArguments.epoch,
            LogArguments.partitions.saying("number of partitions of the log; default: the fewest that fit the records"),
        ],
        examples: [
            Example("reel dump | reel fold --stream todo", "the state of one stream of a log"),
            Example("reel fold --outcomes events.jsonl", "the outcome of each event, then the state"),
            Example("reel fold --check events.jsonl", "the state, compared with that of a second, naive fold"),
        ]
    ) { options, console in
        let all = try LogLine.read(try InputFile.read(options.operands.first ?? "-"))
        let epoch = try epochMeant(by: all, wanted: options[NodeArguments.epoch])
        let lines = all.filter { $0.epoch == nil || $0.epoch == epoch }
        let input = try StreamInput(lines, stream: options[stream], partitions: options[LogArguments.partitions])
        var folding = StreamFolding(input.stream, partition: input.partition, of: input.partitions, epoch: epoch)
        var check: FoldCheck? = options[isChecked] ? FoldCheck(input, epoch: epoch) : nil
        var lostSeeds = 0
        for line in input.lines {
            let outcome = line.key.withUnsafeBytes { key in
                line.value.withUnsafeBytes { folding.fold(key: key, value: $0, seq: line.seq) }
            }
            try check?.compare(line, outcome)
            if outcome == .void, line.isSeed {
                lostSeeds += 1
            }
            if let outcome, options[outcomes] {
                try console.print(#"{"seq":\#(line.seq),"outcome":"\#(outcome)"}"#)
            }
        }
        if lostSeeds > 0 {
            console.note(
                "reel: warning: \(counted(lostSeeds, "seed")) of the stream have no effect, because other seeds at the"
                    + " beginning of the epoch are missing; `reel dump --stream` prints them all"
            )
        }
        guard let snapshot = try folding.snapshot() else {
            throw CommandError(.badData, "the records end inside the seeds of an epoch, where there is no snapshot")
        }
        try console.write(snapshot)
        try check?.compare(snapshot)
        return .done
    }

    /// Returns the epoch to fold: `wanted`, else the only epoch that the lines name.
    private static func epochMeant(by lines: [LogLine], wanted: Epoch?) throws(CommandError) -> Epoch {
        if let wanted { return wanted }
        let named = Set(lines.compactMap(\.epoch)).sorted { $0.value < $1.value }
        guard named.count <= 1 else {
            let names = named.map(\.description).joined(separator: ", ")
            throw CommandError(
                .usage,
                "the input has records of the epochs \(names); choose one with --epoch"
            )
        }
        return named.first ?? Epoch(0)
    }

    private static let stream = Setting<String?>.text("stream", "NAME", "name of the stream")
    private static let outcomes = Setting<Bool>.flag("outcomes", #"print {"seq","outcome"} for each record first"#)
    private static let isChecked = Setting<Bool>.flag("check", "compare with a second, naive fold; fail if they differ")
}

/// The records of one partition, in order, and the stream to fold.
private struct StreamInput {
    let stream: StreamName
    let partition: Int
    let partitions: Int
    let lines: [LogLine]

    /// Finds the stream and its partition.
    ///
    /// - Parameters:
    ///   - lines: the records of the input.
    ///   - name: the name of the stream; nil if the input has only one stream.
    ///   - partitions: the number of partitions of the log. If it is nil, it is the smallest number that maps the
    ///     stream to its partition, and also as many other streams of that partition as possible.
    /// - Throws: a `CommandError` with exit code 2 if the choice is not clear, or 4 if the records contradict each
    ///   other.
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
                    ? "the input has no records of a stream; choose the stream with --stream"
                    : "the input has \(names.count) streams (\(some)); choose one with --stream"
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
                    "records of \(self.stream) are in the partitions \(found.sorted()); give the number of partitions "
                        + "of the log with --partitions"
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

/// A comparison of the fold with the naive fold of the checker.
private struct FoldCheck {
    private var naive: NaiveFold
    private let stream: String

    init(_ input: StreamInput, epoch: Epoch) {
        naive = NaiveFold(epoch: epoch.description, partition: input.partition, of: input.partitions)
        stream = input.stream.description
    }

    /// Folds the record with the naive fold, too.
    ///
    /// - Throws: a `CommandError` with exit code 1 if its outcome differs from `outcome`.
    mutating func compare(_ line: LogLine, _ outcome: Outcome?) throws(CommandError) {
        let naiveOutcome = naive.apply(seq: line.seq, key: line.key, value: line.value)
        guard let outcome, naiveOutcome?.description != outcome.description else { return }
        throw CommandError(
            .failed,
            "seq \(line.seq): the outcome of the fold is \(outcome), that of the naive fold is"
                + " \(naiveOutcome?.description ?? "none")"
        )
    }

    /// Compares the state of the snapshot with that of the naive fold.
    ///
    /// - Throws: a `CommandError` with exit code 1 if they differ.
    func compare(_ snapshot: [UInt8]) throws(CommandError) {
        let read: NaiveSnapshot
        do throws(Fault) {
            read = try NaiveSnapshot(snapshot)
        } catch {
            throw CommandError(.failed, "the snapshot cannot be read: \(error.reason)")
        }
        guard read.digest == read.declaredDigest, read.normalForm == naive.normalForm(of: stream) else {
            throw CommandError(.failed, "the snapshot differs from the naive fold's; its digest is \(read.digest)")
        }
    }
}
