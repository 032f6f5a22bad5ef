public import ReelCore

/// Records of one partition as they lie in the log: memory that threads share and nobody writes again. Who holds the
/// batch, or a copy of its reference, holds the memory.
public final class RecordBatch: @unchecked Sendable {
    /// One record. Its key and value lie in the batch's memory and are lent by `RecordBatch.withRecord`.
    public struct Entry: @unchecked Sendable {
        /// The record's place in its partition.
        public let seq: Seq
        private let origin: Origin
        @usableFromInline let key: UnsafeRawPointer?
        @usableFromInline let value: UnsafeRawPointer?
        @usableFromInline let keySize: UInt32
        @usableFromInline let valueSize: UInt32

        /// Where the witness is: few readers ask for that of each record, and to find it may take longer than the
        /// rest.
        private enum Origin {
            case known(Witness?)
            case kept(UnsafeMutableRawPointer, find: WitnessFinder)
        }

        /// Stores the witness of the record in `memory` into `place`, a `Witness`; false: there is none. On any thread.
        /// No closure: entries are copied and dropped by the thousand, and so need no count of references.
        public typealias WitnessFinder =
            @convention(c) (_ memory: UnsafeMutableRawPointer, _ place: UnsafeMutableRawPointer) -> Bool

        /// A record whose bytes lie in memory that the batch keeps.
        public init(
            seq: Seq,
            witness: Witness?,
            key: UnsafeRawBufferPointer,
            value: UnsafeRawBufferPointer
        ) {
            self.init(seq, .known(witness), key, value)
        }

        /// A record whose witness is found when it is asked for, on any thread, in memory that the batch keeps as well.
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

        /// What its gateway had read last when it handed the record over; nil: nothing. To be asked while the batch is
        /// held.
        public var witness: Witness? {
            switch origin {
            case .known(let witness): witness
            case .kept(let memory, let find):
                withUnsafeTemporaryAllocation(of: Witness.self, capacity: 1) { place in
                    find(memory, place.baseAddress!) ? place[0] : nil
                }
            }
        }

        /// The bytes of its value.
        @inlinable
        public var valueCount: Int { Int(valueSize) }

        /// The bytes of key and value.
        @inlinable
        public var byteCount: Int { Int(keySize) + Int(valueSize) }
    }

    /// The partition that the records are of.
    public let partition: Int
    /// The seqs that the batch accounts for. A seq without an entry is a hole that was read again and is really empty.
    public let seqs: Range<Seq>
    /// The records, by seq.
    public let entries: [Entry]
    /// How many bytes of memory the batch holds for its records, where that is known; else no more than `.max`.
    public let heldBytes: Int
    private let release: (() -> Void)?

    /// A batch over memory that stays where it is until `release` is called, once, on any thread.
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

    /// A batch without records.
    public convenience init(partition: Int, empty seqs: Range<Seq>) {
        self.init(partition: partition, seqs: seqs, entries: [], heldBytes: 0, release: nil)
    }

    deinit {
        release?()
    }

    /// Lends key and value of an entry of this batch.
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

    /// The same records in memory that is worth to be held: a batch that holds much more than they have is copied,
    /// without their witnesses.
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

    /// The entry of a seq; nil if it is a hole or not in this batch.
    public func entry(at seq: Seq) -> Entry? {
        index(of: seq).map { entries[$0] }
    }

    /// Where the entry of a seq stands in `entries`; nil if it is a hole or not in this batch.
    public func index(of seq: Seq) -> Int? {
        guard seqs.contains(seq) else { return nil }
        // Each hole before it moves it forward by one.
        var (low, high) = (0, min(entries.count, Int(seq - seqs.lowerBound) + 1))
        if high > 0, entries[high - 1].seq == seq { return high - 1 }
        while low < high {
            let middle = (low + high) / 2
            if entries[middle].seq < seq { low = middle + 1 } else { high = middle }
        }
        return low < entries.count && entries[low].seq == seq ? low : nil
    }

    /// What a gateway that has read this entry last stamps on the records it hands over.
    public func witness(of entry: Entry) -> Witness {
        withRecord(entry) { key, value in Witness(seq: entry.seq, hash: FNV1a.record(key: key, value: value)) }
    }
}
