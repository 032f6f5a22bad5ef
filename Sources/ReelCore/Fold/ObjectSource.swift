/// The stored rows of a fold's objects and tombstones, from which the fold loads those that it needs. So a fold can be
/// larger than memory.
///
/// A fold with a source holds two kinds of objects in memory: those that differ from their rows, and a cache of others.
/// The owner of the fold writes the changed rows to the source from time to time, see `Fold.takeUnwrittenRows`. Between
/// two such writes the source must return the same rows.
///
/// Reading cannot throw inside the fold. A source that fails records the error and returns nil. The owner checks for an
/// error before it shows, sends or stores a result.
public protocol ObjectSource: AnyObject, Sendable {
    /// Returns the row of an object or tombstone; nil if there is none.
    ///
    /// - Parameter key: the key as `Fold.key(ofObject:)` returns it.
    func row(for key: [UInt8]) -> StoredRow?

    /// Returns keys of rows whose `StoredRow.agingSeq` is at or below a seq, in a fixed order of the source's choice.
    ///
    /// - Parameters:
    ///   - seq: the largest `agingSeq` to return.
    ///   - last: the last key of the previous page; nil for the first page.
    /// - Returns: A page of keys. An empty page ends the list.
    func agingKeys(upTo seq: Seq, after last: AgingKey?) -> [AgingKey]

    /// True if a row could not be read. Then no result of the fold may be used.
    var hasFailed: Bool { get }

    /// Records that a row cannot be read. The owner must not use the fold any more.
    func failed(_ error: ReelError)
}

/// The key of a row that the horizon will pass, with the seq at which it does.
public struct AgingKey: Sendable, Equatable {
    /// The row's `StoredRow.agingSeq`.
    public let seq: Seq
    /// The key of the object or tombstone.
    public let key: [UInt8]

    /// Creates the aging key of a row.
    public init(seq: Seq, key: [UInt8]) {
        self.seq = seq
        self.key = key
    }
}

/// The row of an object or tombstone in an `ObjectSource`.
public struct StoredRow: Sendable, Equatable {
    /// The bytes that `Fold.writeRow(ofObject:to:)` writes.
    public let bytes: [UInt8]
    /// The sum of the hashes of the object's lines in the digest of the stream.
    public let digest: UInt64
    /// The seq at which the horizon changes the row. For a tombstone, which is then forgotten, it is the seq of the
    /// delete. For an object with the history of a text it is the seq of that text's last writer. Nil for other rows.
    public let agingSeq: Seq?

    /// Creates a row from its stored parts.
    ///
    /// - Parameters:
    ///   - bytes: the bytes that `Fold.writeRow(ofObject:to:)` writes.
    ///   - digest: the sum of the hashes of the object's lines in the digest.
    ///   - agingSeq: the seq at which the horizon changes the row; nil: never.
    public init(bytes: [UInt8], digest: UInt64, agingSeq: Seq?) {
        self.bytes = bytes
        self.digest = digest
        self.agingSeq = agingSeq
    }
}

/// A row that differs from that of the source.
public struct UnwrittenRow: Sendable {
    /// The key of the object or tombstone.
    public let key: [UInt8]
    /// The new row; nil: the row is to be removed.
    public let row: StoredRow?
    /// The `agingSeq` of the row that the source has; nil: it has no row, or one without an `agingSeq`.
    public let formerAgingSeq: Seq?

    /// Creates the row of an object or tombstone.
    ///
    /// - Parameters:
    ///   - key: the key of the object or tombstone.
    ///   - row: the new row; nil: the row is to be removed.
    ///   - formerAgingSeq: the `agingSeq` of the row that the source has.
    public init(key: [UInt8], row: StoredRow?, formerAgingSeq: Seq?) {
        self.key = key
        self.row = row
        self.formerAgingSeq = formerAgingSeq
    }
}
