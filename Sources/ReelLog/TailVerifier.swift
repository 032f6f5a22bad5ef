public import ReelCore

/// Notices a log that was rolled back and written again. Each record says, by its witness, what its gateway had read
/// last; a reader that remembers another record at that seq reads another history. Pure, and of bounded memory.
///
/// Only the first and the last record of a batch are checked: a history that was written again stays wrong from its
/// first record on, so the next batch tells.
public struct TailVerifier: Sendable {
    /// The partition that is read.
    public let partition: Int
    /// The seq that is expected next.
    public private(set) var next: Seq
    /// The last record that was read: what a gateway stamps on records that it hands over. Nil: none read yet.
    public private(set) var last: Witness?
    /// The highest seq at which another party's witness agreed; −1: none yet.
    public private(set) var agreed: Seq = .none
    private var memory = HashMemory()

    /// A reader that reads on from `next`. `last` is what it knows of the record before, stored with its position.
    public init(partition: Int, next: Seq, last: Witness? = nil) {
        self.partition = partition
        self.next = next
        self.last = last
        if let last { memory.remember(last.hash, at: last.seq) }
    }

    /// Takes the next batch. Throws `diverged`, with the last seq that agreed, if the batch belongs to another history;
    /// `internal` if it does not follow the one before. Then nothing of the batch has been taken.
    public mutating func take(_ batch: RecordBatch) throws(LogError) {
        guard batch.partition == partition, batch.seqs.lowerBound == next else {
            throw LogError(
                .internal,
                "found seq \(batch.seqs.lowerBound) of partition \(batch.partition), expected \(next) of"
                    + " \(partition)"
            )
        }
        var agreed = agreed
        for entry in [batch.entries.first, batch.entries.last].compactMap(\.self) {
            guard let witness = entry.witness else { continue }
            if try check(witness, of: entry, in: batch) { agreed = max(agreed, witness.seq) }
        }
        self.agreed = agreed
        for entry in batch.entries.suffix(HashMemory.capacity) {
            let witness = batch.witness(of: entry)
            memory.remember(witness.hash, at: entry.seq)
            last = witness
        }
        next = batch.seqs.upperBound
    }

    /// True if the witness agrees, false if that is not known any more.
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
            "partition \(partition) was rolled back and written again: \(found); the last seq that agreed is"
                + " \(agreed)",
            seq: agreed
        )
    }
}

/// The hashes of the records read last, by seq.
private struct HashMemory: Sendable {
    static let capacity = 1024

    /// Place `seq % capacity`; empty until the first is remembered.
    private var hashes: [Witness] = []

    mutating func remember(_ hash: UInt64, at seq: Seq) {
        guard seq >= 0 else { return }
        if hashes.isEmpty { hashes = Array(repeating: Witness(seq: .none, hash: 0), count: Self.capacity) }
        hashes[Int(seq % Seq(Self.capacity))] = Witness(seq: seq, hash: hash)
    }

    func hash(at seq: Seq) -> UInt64? {
        guard seq >= 0, !hashes.isEmpty else { return nil }
        let place = hashes[Int(seq % Seq(Self.capacity))]
        return place.seq == seq ? place.hash : nil
    }
}
