public import ReelCore

/// Follows a partition batch by batch, and finds a log that was rolled back and written again by its witnesses (see
/// `RecordBatch.checkWitnesses`). Records after the end of the epoch are not believed. Pure, with bounded memory.
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
        if let last { memory.remember(last) }
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
        let (count, hasEnded) = beforeEnd(of: batch)
        do throws(LogError) {
            let latest = try batch.checkWitnesses(
                in: 0..<count,
                isBelieved: { isWitness(batch.entries[$0], of: batch) },
                record: memory.record
            )
            agreed = max(agreed, latest)
        } catch {
            throw LogError(error.code, "\(error.message); the last seq that agreed is \(agreed)", seq: agreed)
        }
        self.hasEnded = hasEnded
        for entry in batch.entries.suffix(HashMemory.capacity) {
            let witness = batch.witness(of: entry)
            memory.remember(witness)
            last = witness
        }
        next = batch.seqs.upperBound
    }

    /// Returns the number of records of a batch up to the end of the epoch, and whether the epoch has ended.
    private func beforeEnd(of batch: RecordBatch) -> (Int, hasEnded: Bool) {
        if hasEnded { return (0, true) }
        let end = batch.entries.firstIndex { entry in
            batch.withRecord(entry) { key, value in
                guard StreamName.barrierKey.utf8.elementsEqual(key) else { return false }
                return if case .known(.end) = Barrier.read(value) { true } else { false }
            }
        }
        return end.map { ($0 + 1, true) } ?? (batch.entries.count, false)
    }

    private mutating func isWitness(_ entry: RecordBatch.Entry, of batch: RecordBatch) -> Bool {
        batch.withRecord(entry) { key, value in rules.isWitness(key: key, value: value, event: &event) }
    }
}

/// The hashes of the records that were read last, by seq.
private struct HashMemory: Sendable {
    static let capacity = 1024

    /// The hash of a seq is at index `seq % capacity`. The array is empty until the first hash is remembered.
    private var hashes: [Witness] = []

    mutating func remember(_ record: Witness) {
        guard record.seq >= 0 else { return }
        if hashes.isEmpty { hashes = Array(repeating: Witness(seq: .none, hash: 0), count: Self.capacity) }
        hashes[Int(record.seq % Seq(Self.capacity))] = record
    }

    func record(at seq: Seq) -> Witness? {
        guard seq >= 0, !hashes.isEmpty else { return nil }
        let known = hashes[Int(seq % Seq(Self.capacity))]
        return known.seq == seq ? known : nil
    }
}
