public import ReelCore

/// Records of one partition as they lie in the log: one piece of memory, shared and never written again.
public final class RecordBatch: Sendable {
    /// One record; the bytes lie in the batch's memory.
    public struct Entry: Sendable {
        public var seq: Seq
        /// The hash of key, zero byte, value (what the next witness says).
        public var witness: Witness?
        var keyStart: Int
        var keyCount: Int
        var valueStart: Int
        var valueCount: Int
    }

    public let partition: Int
    /// The seqs that the batch accounts for. A seq without an entry is a hole that was read again and is really empty.
    public let seqs: Range<Seq>
    public let entries: [Entry]
    private let storage: [UInt8]

    init(partition: Int, seqs: Range<Seq>, entries: [Entry], storage: [UInt8]) {
        self.partition = partition
        self.seqs = seqs
        self.entries = entries
        self.storage = storage
    }

    /// Lends key and value of an entry.
    @inlinable
    public func withRecord<R>(
        _ entry: Entry, _ body: (_ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer) throws -> R
    ) rethrows -> R {
        fatalError()
    }
}
