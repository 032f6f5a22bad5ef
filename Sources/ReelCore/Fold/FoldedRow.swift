/// An object or tombstone that was read from its row, without a fold.
package struct FoldedRow: Sendable {
    var object: FoldedObject

    /// Reads a row.
    ///
    /// - Parameters:
    ///   - key: the key as `Fold.key(ofObject:)` returns it.
    ///   - row: the bytes that `Fold.writeRow(ofObject:to:)` has written.
    /// - Throws: `internal` or `bad_json` for bytes that the fold cannot have written.
    package init(key: [UInt8], row: Bytes) throws(ReelError) {
        object = Fold.split(key) { ObjectTable.object(model: $0, id: $1, seq: .none) }
        try FoldLoader.read(row, into: &object)
    }

    /// Reads a row with a key that may be damaged.
    ///
    /// - Throws: as `init(key:row:)`, also for a key that the fold cannot have written.
    package init(checking key: [UInt8], row: Bytes) throws(ReelError) {
        try FoldLoader.check(key, of: row)
        try self.init(key: key, row: row)
    }

    /// True for an object, false for a tombstone.
    package var isAlive: Bool { object.state == .alive }

    /// The `agingSeq` of the row, see `StoredRow`.
    package var agingSeq: Seq? { object.agingSeq }

    /// The bytes that `Fold.objectBytes` includes for the row; 0 for a tombstone.
    package var countedBytes: Int { isAlive ? object.countableBytes : 0 }

    /// Returns the sum of the hashes of the object's lines in the digest.
    package mutating func digest() -> UInt64 {
        var line = DigestLine()
        return line.sum(&object)
    }

    /// Reads only the beginning of a row.
    ///
    /// - Returns: True for an object, false for a tombstone; and the seq of the last event applied, or of the delete.
    static func stateAndSeq(of row: Bytes) throws(ReelError) -> (isAlive: Bool, seq: Seq) {
        var row = RowReader(row)
        return (try row.flag(), try row.number())
    }
}
