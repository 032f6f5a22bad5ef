internal import CXxhash

/// The hash of a stored row: 64-bit XXH3 over the table, the key columns and the bytes. It is needed because SQLite
/// does not detect a flipped byte. A row that was moved to another key or table has another hash as well.
///
/// Parts are added in a fixed order. Each part is hashed in place, so nothing is copied. Numbers are hashed in the byte
/// order of the machine; all machines on which Reel runs are little-endian.
package struct RowHash: Equatable, Sendable {
    /// The table of the row. The numbers are part of stored hashes, so they never change.
    package enum Table: UInt64, Sendable {
        case records = 1
        case log = 2
        case control = 3
        case deployment = 4
        case meta = 11
        case stream = 12
        case object = 13
        case site = 14
        case event = 15
        case waiting = 16
    }

    /// The hash of the parts that were added.
    package private(set) var value: UInt64

    /// The hash as SQLite stores it.
    package var stored: Int64 { Int64(bitPattern: value) }

    /// Creates a hash without parts.
    package init(of table: Table) {
        value = table.rawValue
    }

    /// Adds a number.
    package mutating func add(_ number: Int64) {
        value = reel_xxh3_pair(value, UInt64(bitPattern: number))
    }

    /// Adds bytes.
    package mutating func add(_ bytes: UnsafeRawBufferPointer) {
        add(digest: Self.digest(of: bytes))
    }

    /// Adds bytes by their digest.
    package mutating func add(digest: UInt64) {
        value = reel_xxh3_pair(value, digest)
    }

    /// Returns the digest of bytes, for a later `add(digest:)`.
    package static func digest(of bytes: UnsafeRawBufferPointer) -> UInt64 {
        reel_xxh3(bytes.baseAddress, bytes.count)
    }
}
