public import ReelCore

/// Detects a log that was rolled back and written again. The witness of a record says which record its gateway had read
/// last. If a reader remembers another record at that seq, it has read another history. Pure, with bounded memory.
///
/// Only the first and the last record of a batch are checked. A rewritten history stays wrong from its first record on,
/// so the next batch reveals it. Void records are not trusted, because anyone may have written them.
public struct TailVerifier: Sendable {
    /// The rules of the partition at the reader's position.
    private let rules: PartitionRules
    private var hasEnded: Bool
    private var event = ParsedEvent()
    /// The next seq that is expected.
    public private(set) var next: Seq
    /// The last record that was read. A gateway stamps it on the records that it appends. Nil: none was read yet.
    public private(set) var last: Witness?
    /// The highest seq at which a witness of another writer agreed; −1: none yet.
    public private(set) var agreed: Seq = .none
    private var memory = HashMemory()

    /// Creates the verifier of a reader that continues at `next`.
    ///
    /// - Parameters:
    ///   - rules: The state of the partition at `next`.
    ///   - next: The next seq that is expected.
    ///   - last: The record before `next`, as the reader has stored it with its position; nil: unknown.
    public init(_ rules: PartitionRules, next: Seq, last: Witness? = nil) {
        self.rules = rules
        hasEnded = if case .ended = rules.phase { true } else { false }
        self.next = next
        self.last = last
        if let last { memory.remember(last.hash, at: last.seq) }
    }

    /// Checks the next batch and remembers its records.
    ///
    /// - Throws: `diverged`, with the last seq that agreed, if the batch belongs to another history. `internal` if it
    ///   does not follow the previous batch. After an error the verifier is unchanged.
    public mutating func take(_ batch: RecordBatch) throws(LogError) {
        guard batch.partition == rules.partition, batch.seqs.lowerBound == next else {
            throw LogError(
                .internal,
                "found seq \(batch.seqs.lowerBound) of partition \(batch.partition), expected \(next) of"
                    + " \(rules.partition)"
            )
        }
        var agreed = agreed
        let (entries, hasEnded) = beforeEnd(of: batch)
        for entry in believed(entries, of: batch) {
            guard let witness = entry.witness else { continue }
            if try check(witness, of: entry, in: batch) { agreed = max(agreed, witness.seq) }
        }
        self.agreed = agreed
        self.hasEnded = hasEnded
        for entry in batch.entries.suffix(HashMemory.capacity) {
            let witness = batch.witness(of: entry)
            memory.remember(witness.hash, at: entry.seq)
            last = witness
        }
        next = batch.seqs.upperBound
    }

    /// Returns the records of a batch up to the end of the epoch, and whether the epoch has ended.
    private func beforeEnd(of batch: RecordBatch) -> (ArraySlice<RecordBatch.Entry>, hasEnded: Bool) {
        if hasEnded { return ([], true) }
        let end = batch.entries.firstIndex { entry in
            batch.withRecord(entry) { key, value in
                guard StreamName.barrierKey.utf8.elementsEqual(key) else { return false }
                return if case .known(.end) = Barrier.read(value) { true } else { false }
            }
        }
        return end.map { (batch.entries[...$0], true) } ?? (batch.entries[...], false)
    }

    /// Returns the first and the last of these records with a trusted witness.
    private mutating func believed(
        _ entries: ArraySlice<RecordBatch.Entry>,
        of batch: RecordBatch
    ) -> [RecordBatch.Entry] {
        let isWitness = { [rules] (entry: RecordBatch.Entry, event: inout ParsedEvent) in
            batch.withRecord(entry) { key, value in rules.isWitness(key: key, value: value, event: &event) }
        }
        guard let first = entries.first(where: { isWitness($0, &event) }) else { return [] }
        guard let last = entries.last(where: { isWitness($0, &event) }), last.seq != first.seq else { return [first] }
        return [first, last]
    }

    /// True if the witness agrees; false if the record at its seq is no longer remembered.
    private func check(_ witness: Witness, of entry: RecordBatch.Entry, in batch: RecordBatch) throws(LogError) -> Bool
    {
        guard witness.seq < entry.seq else {
            throw diverged(
                "the record at seq \(entry.seq) was handed over by one who had read seq \(witness.seq) already"
            )
        }
        let known = batch.entry(at: witness.seq).map { batch.witness(of: $0).hash } ?? memory.hash(at: witness.seq)
        guard let known else { return false }
        guard known == witness.hash else {
            throw diverged(
                "the record at seq \(entry.seq) was handed over by one who had read another record at seq"
                    + " \(witness.seq)"
            )
        }
        return true
    }

    private func diverged(_ found: String) -> LogError {
        LogError(
            .diverged,
            "partition \(rules.partition) was rolled back and written again: \(found); the last seq that agreed is"
                + " \(agreed)",
            seq: agreed
        )
    }
}

/// The hashes of the records that were read last, by seq.
private struct HashMemory: Sendable {
    static let capacity = 1024

    /// The hash of a seq is at index `seq % capacity`. The array is empty until the first hash is remembered.
    private var hashes: [Witness] = []

    mutating func remember(_ hash: UInt64, at seq: Seq) {
        guard seq >= 0 else { return }
        if hashes.isEmpty { hashes = Array(repeating: Witness(seq: .none, hash: 0), count: Self.capacity) }
        hashes[Int(seq % Seq(Self.capacity))] = Witness(seq: seq, hash: hash)
    }

    func hash(at seq: Seq) -> UInt64? {
        guard seq >= 0, !hashes.isEmpty else { return nil }
        let known = hashes[Int(seq % Seq(Self.capacity))]
        return known.seq == seq ? known.hash : nil
    }
}
