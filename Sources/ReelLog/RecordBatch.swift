internal import ReelBase
public import ReelCore

/// Consecutive records of one partition, in immutable memory that threads may share. A reference to the batch keeps the
/// memory alive.
public final class RecordBatch: @unchecked Sendable {
    /// One record. Its key and value are in the batch's memory; `RecordBatch.withRecord` lends them.
    public struct Entry: @unchecked Sendable {
        /// The record's seq in its partition.
        public let seq: Seq
        private let origin: Origin
        @usableFromInline let key: UnsafeRawPointer?
        @usableFromInline let value: UnsafeRawPointer?
        @usableFromInline let keySize: UInt32
        @usableFromInline let valueSize: UInt32

        /// The source of the witness. Few readers need the witness of every record, and finding it may take longer than
        /// reading the rest of the record.
        private enum Origin {
            case known(Witness?)
            case kept(UnsafeMutableRawPointer, find: WitnessFinder)
        }

        /// A function that stores the witness of the record in `memory` as a `Witness` into `place`; false: there is
        /// none. From any thread.
        ///
        /// It is a C function and not a closure: entries are copied and dropped in large numbers, and a closure would
        /// need reference counting.
        public typealias WitnessFinder =
            @convention(c) (_ memory: UnsafeMutableRawPointer, _ place: UnsafeMutableRawPointer) -> Bool

        /// Creates a record over bytes in memory that the batch keeps.
        ///
        /// - Parameters:
        ///   - seq: The record's seq in its partition.
        ///   - witness: The last record that the gateway had read when it appended this one; nil: none.
        ///   - key: The bytes of the key.
        ///   - value: The bytes of the value.
        public init(
            seq: Seq,
            witness: Witness?,
            key: UnsafeRawBufferPointer,
            value: UnsafeRawBufferPointer
        ) {
            self.init(seq, .known(witness), key, value)
        }

        /// Creates a record with a witness that is found on demand, on any thread.
        ///
        /// - Parameters:
        ///   - seq: The record's seq in its partition.
        ///   - memory: The memory that `find` is called with, which the batch also keeps.
        ///   - find: The function that finds the witness.
        ///   - key: The bytes of the key, in memory that the batch keeps.
        ///   - value: The bytes of the value, in memory that the batch keeps.
        public init(
            seq: Seq,
            witnessIn memory: UnsafeMutableRawPointer,
            find: WitnessFinder,
            key: UnsafeRawBufferPointer,
            value: UnsafeRawBufferPointer
        ) {
            self.init(seq, .kept(memory, find: find), key, value)
        }

        private init(_ seq: Seq, _ origin: Origin, _ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer) {
            self.seq = seq
            self.origin = origin
            self.key = key.baseAddress
            self.value = value.baseAddress
            keySize = UInt32(key.count)
            valueSize = UInt32(value.count)
        }

        /// The last record that the gateway had read when it appended this one; nil: none. Valid only while the batch
        /// is alive.
        public var witness: Witness? {
            switch origin {
            case .known(let witness): witness
            case .kept(let memory, let find):
                withUnsafeTemporaryAllocation(of: Witness.self, capacity: 1) { place in
                    find(memory, place.baseAddress!) ? place[0] : nil
                }
            }
        }

        /// The size of the value in bytes.
        @inlinable
        public var valueCount: Int { Int(valueSize) }

        /// The size of key and value together in bytes.
        @inlinable
        public var byteCount: Int { Int(keySize) + Int(valueSize) }
    }

    /// The partition of the records.
    public let partition: Int
    /// The seqs that the batch covers. A seq without an entry is a hole: it was read twice and has no record.
    public let seqs: Range<Seq>
    /// The records, by seq.
    public let entries: [Entry]
    /// How many bytes of memory the batch holds for its records; `.max`: unknown.
    public let heldBytes: Int
    private let release: (() -> Void)?

    /// Creates a batch over memory that stays in place until `release` is called.
    ///
    /// - Parameters:
    ///   - partition: The partition of the records.
    ///   - seqs: The seqs that the batch covers. A seq without an entry is a hole.
    ///   - entries: The records, by seq.
    ///   - heldBytes: The size in bytes of the memory that the batch holds for its records; `.max`: unknown.
    ///   - release: Called once, on any thread, when the last reference to the batch is dropped; nil: nothing to do.
    public init(
        partition: Int,
        seqs: Range<Seq>,
        entries: [Entry],
        heldBytes: Int = .max,
        release: (() -> Void)?
    ) {
        self.partition = partition
        self.seqs = seqs
        self.entries = entries
        self.heldBytes = heldBytes
        self.release = release
    }

    /// Creates a batch without records that covers `seqs`.
    public convenience init(partition: Int, empty seqs: Range<Seq>) {
        self.init(partition: partition, seqs: seqs, entries: [], heldBytes: 0, release: nil)
    }

    deinit {
        release?()
    }

    /// Calls `body` with the key and value of an entry of this batch. The bytes are valid only during the call.
    @inlinable
    public func withRecord<R, E>(
        _ entry: Entry,
        _ body: (_ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer) throws(E) -> R
    ) throws(E) -> R {
        defer { withExtendedLifetime(self) {} }
        return try body(
            UnsafeRawBufferPointer(start: entry.key, count: Int(entry.keySize)),
            UnsafeRawBufferPointer(start: entry.value, count: Int(entry.valueSize))
        )
    }

    /// Returns a batch with the same records that wastes little memory. If this batch holds more than twice the bytes
    /// of its records, the result is a copy without witnesses.
    public func compact() -> RecordBatch {
        let byteCount = entries.reduce(0) { $0 + $1.byteCount }
        if heldBytes <= 2 * byteCount { return self }
        let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: byteCount, alignment: 1)
        var used = 0
        func keep(_ bytes: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer {
            let place = UnsafeMutableRawBufferPointer(rebasing: memory[used..<used + bytes.count])
            place.copyMemory(from: bytes)
            used += bytes.count
            return UnsafeRawBufferPointer(place)
        }
        let copies = entries.map { entry in
            withRecord(entry) { Entry(seq: entry.seq, witness: nil, key: keep($0), value: keep($1)) }
        }
        nonisolated(unsafe) let held = memory
        return RecordBatch(partition: partition, seqs: seqs, entries: copies, heldBytes: byteCount) {
            held.deallocate()
        }
    }

    /// Returns the entry of a seq; nil if it is a hole or not in this batch.
    public func entry(at seq: Seq) -> Entry? {
        index(of: seq).map { entries[$0] }
    }

    /// Returns the index of a seq's entry in `entries`; nil if it is a hole or not in this batch.
    public func index(of seq: Seq) -> Int? {
        guard seqs.contains(seq) else { return nil }
        // Without holes the index is the distance from the first seq. Each earlier hole reduces it by one.
        let end = min(entries.count, Int(seq - seqs.lowerBound) + 1)
        if end > 0, entries[end - 1].seq == seq { return end - 1 }
        let index = entries[..<end].partitioningIndex { $0.seq < seq }
        return index < entries.count && entries[index].seq == seq ? index : nil
    }

    /// Returns the witness for records that a gateway appends when this entry is the last one that it has read.
    public func witness(of entry: Entry) -> Witness {
        withRecord(entry) { key, value in Witness(seq: entry.seq, hash: FNV1a.record(key: key, value: value)) }
    }
}
