import ReelCore
import ReelLog
import ReelNode

extension SiteListing {
    /// Folds the stream from its log. Blocks.
    ///
    /// - Parameters:
    ///   - stream: the stream.
    ///   - log: the log.
    ///   - progress: called after each read with the last seq that was read, and the last seq of the partition.
    /// - Throws: a `CommandError` if the beginning of the log was trimmed (exit code 4), or the log needs a newer
    ///   version (exit code 1).
    init(of stream: StreamName, from log: any EventLog, _ progress: (Seq, Seq) -> Void = { _, _ in }) throws {
        let partition = stream.partition(of: log.partitions)
        let bounds = try log.bounds(partition)
        guard bounds.first <= 0 else {
            throw CommandError(
                .badData,
                "partition \(partition) begins at seq \(bounds.first): the log no longer has all events of the sites;"
                    + " name a node with --url, which has folded them"
            )
        }
        var folding = StreamFolding(stream, partition: partition, of: log.partitions, epoch: log.epoch)
        var times: [Site: (seq: Seq, atMs: Int64)] = [:]
        try log.scan(partition, from: 0, to: bounds.last) { batch in
            for entry in batch.entries {
                try batch.withRecord(entry) { key, value in
                    switch folding.fold(key: key, value: value, seq: entry.seq) {
                    case .applied, .rejected:
                        if let atMs = EventIntake.clock(of: value) { times[folding.author] = (entry.seq, atMs) }
                    case .stopped:
                        throw CommandError(
                            .failed,
                            "found a barrier at seq \(entry.seq) of partition \(partition) that this version does not"
                                + " know: run a newer version"
                        )
                    default: break
                    }
                }
            }
            progress(batch.seqs.upperBound - 1, bounds.last)
        }
        let fold = folding.fold
        self.init(
            stream: stream,
            epoch: log.epoch,
            partition: partition,
            seq: max(bounds.last, fold.seq),
            next: fold.next,
            living: fold.liveSites
        )
        for site in fold.sites() {
            guard let state = fold.site(site) else { continue }
            var listed = ListedSite(site, state)
            if let time = times[site], time.seq == state.seq { listed.atMs = time.atMs }
            sites.append(listed)
        }
        ended = sites.count - living
        sites.sort { $0.seq < $1.seq }
    }

    /// Folds the stream from its log, and prints the progress to standard error every second. Blocks.
    static func folded(
        _ stream: StreamName,
        _ log: any EventLog,
        _ console: Console
    ) throws -> SiteListing {
        var printedAt = ContinuousClock.now
        return try SiteListing(of: stream, from: log) { seq, last in
            guard ContinuousClock.now - printedAt > .seconds(1) else { return }
            printedAt = ContinuousClock.now
            console.note("folding: seq \(seq) of \(last)")
        }
    }
}
