internal import Glibc
public import ReelCore

/// Writes the barrier that ends the idle sites of a stream into the log, and reads it back. Every call blocks.
public struct SiteRetirement {
    private let log: any EventLog
    private let stream: StreamName
    private let partition: Int
    private let readBackMs: Int

    /// Creates a retirement in this log.
    ///
    /// - Parameters:
    ///   - log: The log.
    ///   - stream: The stream whose sites are ended.
    ///   - readBackMs: The timeout for reading the barrier back, in milliseconds.
    public init(_ log: any EventLog, stream: StreamName, readBackMs: Int = 10_000) {
        self.log = log
        self.stream = stream
        self.readBackMs = readBackMs
        partition = stream.partition(of: log.partitions)
    }

    /// Ends every site of the stream with a last consumed event at or before a seq.
    ///
    /// If the same barrier is already in the log after `folded`, nothing is written. After a failed append the record
    /// may still be in the log, so it is searched for and the append is not repeated.
    ///
    /// - Parameters:
    ///   - before: The seq in the barrier, at most `folded`. A site with a later event stays active, so a publish in
    ///     flight does not race with the barrier.
    ///   - folded: The last seq of the partition that the caller has folded. The end of the epoch must not be in it.
    /// - Returns: The seq of the barrier.
    /// - Throws: `bad_request` for a `before` out of range. `ahead_of_log` if the log ends before `folded`. `truncated`
    ///   if records after `folded` are gone. `epoch_changed` if the epoch has ended; also if it ends before the
    ///   barrier, which is then void. `internal` for a barrier that this version does not know. The log's own errors.
    public func run(before: Seq, foldedTo folded: Seq) throws(LogError) -> Seq {
        let bounds = try log.bounds(partition)
        guard folded <= bounds.last else {
            throw LogError(
                .aheadOfLog,
                "the sites were read as of seq \(folded) of partition \(partition), and the log ends at seq"
                    + " \(bounds.last): name the log of the nodes, or see whether it was rolled back",
                seq: bounds.last
            )
        }
        guard (0...folded).contains(before) else {
            throw LogError(
                .badRequest,
                "found seq \(before) as the last one of idle sites, expected one from 0 to \(folded), the last of"
                    + " partition \(partition)"
            )
        }
        guard bounds.first <= folded + 1 else {
            throw LogError(
                .truncated,
                "partition \(partition) begins at seq \(bounds.first), behind seq \(folded), as of which the sites were"
                    + " read: read them again",
                seq: bounds.first
            )
        }
        let barrier = Barrier.retire(before: before, stream: stream).value
        var search = Search(barrier: barrier, next: folded + 1)
        try find(&search, to: bounds.last)
        if let found = search.found { return found }
        let last = if let last = search.last { last } else { try witness(of: bounds.last) }
        let failure = append(barrier, witness: last)
        return try readBack(&search, failure)
    }

    /// Appends the barrier once. Returns the error of the answer, if any; the record may be in the log even then.
    private func append(_ barrier: [UInt8], witness: Witness?) -> LogError? {
        do throws(LogError) {
            let append = try BulkAppend(log)
            let key = Array(StreamName.barrierKey.utf8)
            try append.add(LogAppend(key: key, value: barrier, witness: witness), to: partition)
            try append.finish()
            return nil
        } catch {
            return error
        }
    }

    private func readBack(_ search: inout Search, _ failure: LogError?) throws(LogError) -> Seq {
        var failure = failure
        for _ in 0...readBackMs / 20 {
            do throws(LogError) {
                try find(&search, to: try log.bounds(partition).last)
                if let found = search.found { return found }
            } catch  where error.code == .logUnavailable {
                failure = failure ?? error
            }
            usleep(20_000)
        }
        let reason = failure.map { " (\($0.message))" } ?? ""
        throw LogError(
            .logUnavailable,
            "the barrier was handed to the log and is not found there within \(readBackMs) ms\(reason): once the log"
                + " answers again, run the same command, which counts from the end that the log then has"
        )
    }

    // MARK: Looking for it

    private struct Search {
        let barrier: [UInt8]
        var next: Seq
        /// The last record that was examined.
        var last: Witness?
        /// The seq of the barrier.
        var found: Seq?
    }

    /// Searches the partition for the barrier. Throws if an earlier barrier ends the epoch or is unknown.
    private func find(_ search: inout Search, to last: Seq) throws(LogError) {
        while search.found == nil, search.next <= last {
            let batch = try log.piece(partition, from: search.next, to: last)
            for entry in batch.entries where search.found == nil {
                let isMatch = try batch.withRecord(entry) { (key, value) throws(LogError) in
                    try isBarrier(search.barrier, key, value, at: entry.seq)
                }
                if isMatch { search.found = entry.seq }
            }
            if let entry = batch.entries.last { search.last = batch.witness(of: entry) }
            search.next = batch.seqs.upperBound
        }
    }

    private func isBarrier(_ barrier: [UInt8], _ key: Bytes, _ value: Bytes, at seq: Seq) throws(LogError) -> Bool {
        guard StreamName.barrierKey.utf8.elementsEqual(key) else { return false }
        if barrier.elementsEqual(value) { return true }
        switch Barrier.read(value) {
        case .known(.end(let next)):
            throw LogError(
                .epochChanged,
                "the epoch \(log.epoch) has ended at seq \(seq) of partition \(partition), and continues in \(next):"
                    + " once that is the current log, run the same command again"
            )
        case .unknown:
            throw LogError(
                .internal,
                "found a barrier at seq \(seq) of partition \(partition) that this version does not know: run a newer"
                    + " one"
            )
        case .known, .none: return false
        }
    }

    private func witness(of seq: Seq) throws(LogError) -> Witness? {
        guard seq >= 0 else { return nil }
        let batch = try log.read(partition, from: seq, to: seq, bytes: 1)
        return batch.entries.last.map { batch.witness(of: $0) }
    }
}
