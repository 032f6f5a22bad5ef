internal import ReelCore

// A row of a log's file holds a group of records of one partition that were committed together. Its blob:
//
//     check (8 bytes)  then for each record:
//     varint key size, varint value size · 2 + (1 if there is a witness), [seq, hash (8 bytes each)], key, value
//
// Integers are little-endian. The check is the row's hash over partition, last seq, count and all bytes after the check
// (`RowHash`), because SQLite does not detect a flipped byte in a blob. Rows that a build wrote before version 3 of the
// file have an older check, without the count. Either is accepted.

/// A builder of a row.
final class RowBuilder {
    private(set) var partition = 0
    private(set) var count = 0
    private var last: Seq = .none
    private var memory = UnsafeMutableRawBufferPointer.allocate(byteCount: 4096, alignment: 8)
    private var used = checkSize
    private var digest: UInt64 = 0

    /// The size in bytes at which a row is full. Only a single larger record makes a larger row.
    static let comfortableSize = 256 << 10

    deinit {
        memory.deallocate()
    }

    func begin(_ partition: Int) {
        self.partition = partition
        count = 0
        used = checkSize
        if memory.count > 2 * Self.comfortableSize { resize(to: 4096) }
    }

    /// Adds a record. Returns false if it must go into the next row.
    func add(_ record: LogAppend) -> Bool {
        let room = record.key.count + record.value.count + 2 * 10 + 16
        if used + room > memory.count {
            guard count == 0 || used + room <= Self.comfortableSize else { return false }
            resize(to: max(2 * memory.count, used + room))
        }
        put(varint: UInt64(record.key.count))
        put(varint: UInt64(record.value.count) << 1 | (record.witness == nil ? 0 : 1))
        if let witness = record.witness {
            put(UInt64(bitPattern: witness.seq))
            put(witness.hash)
        }
        put(record.key)
        put(record.value)
        count += 1
        return true
    }

    /// Computes the expensive part of the check, before the file is locked.
    func finish() {
        digest = RowHash.digest(of: UnsafeRawBufferPointer(rebasing: memory[checkSize..<used]))
    }

    /// Returns the blob, once the last record's seq is known. Valid until the builder changes.
    func end(_ last: Seq) -> UnsafeRawBufferPointer {
        self.last = last
        memory.storeBytes(
            of: rowCheck(digest: digest, partition: partition, last: last, count: Int64(count)).littleEndian,
            as: UInt64.self
        )
        return bytes
    }

    /// The records of the finished row, as they are read from the file.
    var batch: RecordBatch {
        var builder = BatchBuilder(partition: partition, from: last - Seq(count) + 1, to: last, bytes: .max)
        _ = builder.add(last: last, count: Int64(count), row: bytes)
        return builder.finish()
    }

    private var bytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(rebasing: memory[..<used]) }

    private func put(varint value: UInt64) {
        var rest = value
        while rest >= 0x80 {
            memory[used] = UInt8(truncatingIfNeeded: rest) | 0x80
            used += 1
            rest >>= 7
        }
        memory[used] = UInt8(rest)
        used += 1
    }

    private func put(_ value: UInt64) {
        memory.storeBytes(of: value.littleEndian, toByteOffset: used, as: UInt64.self)
        used += 8
    }

    private func put(_ bytes: [UInt8]) {
        bytes.withUnsafeBytes { UnsafeMutableRawBufferPointer(rebasing: memory[used...]).copyMemory(from: $0) }
        used += bytes.count
    }

    private func resize(to size: Int) {
        let larger = UnsafeMutableRawBufferPointer.allocate(byteCount: size, alignment: 8)
        larger.copyMemory(from: UnsafeRawBufferPointer(rebasing: memory[..<used]))
        memory.deallocate()
        memory = larger
    }
}

/// A reader of a row, over memory that it borrows.
struct RowCursor {
    private let bytes: UnsafeRawBufferPointer
    private(set) var offset = checkSize

    /// Returns nil if the row is damaged. The check of an older build does not protect the count.
    init?(_ bytes: UnsafeRawBufferPointer, partition: Int, last: Seq, count: Int64) {
        guard bytes.count >= checkSize else { return nil }
        let body = UnsafeRawBufferPointer(rebasing: bytes[checkSize...])
        let digest = RowHash.digest(of: body)
        let check = UInt64(littleEndian: bytes.loadUnaligned(as: UInt64.self))
        guard
            check == rowCheck(digest: digest, partition: partition, last: last, count: count)
                || check == OlderCheck.row(body, partition: partition, last: last)
        else { return nil }
        self.bytes = bytes
    }

    /// True if the row has exactly `count` records and no other bytes, and they fit between seq 0 and `last`.
    func holds(_ count: Int64, upTo last: Seq) -> Bool {
        guard count > 0, count - 1 <= last else { return false }
        var cursor = self
        for _ in 0..<count {
            guard cursor.next() != nil else { return false }
        }
        return cursor.offset == bytes.count
    }

    /// The ranges of a record's key and value in the row, and its witness.
    struct Record {
        var key: Range<Int>
        var value: Range<Int>
        var witness: Witness?
    }

    /// Returns the next record; nil if the row ends or is damaged.
    mutating func next() -> Record? {
        guard let keySize = varint(), let tagged = varint() else { return nil }
        var witness: Witness?
        if tagged & 1 != 0 {
            guard bytes.count - offset >= 16 else { return nil }
            witness = Witness(
                seq: Seq(
                    bitPattern: UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: offset, as: UInt64.self))
                ),
                hash: UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: offset + 8, as: UInt64.self))
            )
            offset += 16
        }
        let valueSize = tagged >> 1
        let rest = UInt64(bytes.count - offset)
        guard keySize <= rest, valueSize <= rest - keySize else { return nil }
        let key = offset..<offset + Int(keySize)
        offset = key.upperBound + Int(valueSize)
        return Record(key: key, value: key.upperBound..<offset, witness: witness)
    }

    private mutating func varint() -> UInt64? {
        var value: UInt64 = 0
        var shift: UInt64 = 0
        while offset < bytes.count, shift < 63 {
            let byte = bytes[offset]
            offset += 1
            value |= UInt64(byte & 0x7f) << shift
            if byte < 0x80 { return value }
            shift += 7
        }
        return nil
    }
}

private let checkSize = 8

private func rowCheck(digest: UInt64, partition: Int, last: Seq, count: Int64) -> UInt64 {
    var hash = RowHash(of: .records)
    hash.add(Int64(partition))
    hash.add(last)
    hash.add(count)
    hash.add(digest: digest)
    return hash.value
}

/// The check of rows from before version 3 of the file: FNV-1a's method applied to words of eight bytes.
enum OlderCheck {
    static func row(_ body: UnsafeRawBufferPointer, partition: Int, last: Seq) -> UInt64 {
        var hash: UInt64 = 0xcbf2_9ce4_8422_2325 ^ UInt64(body.count)
        var offset = 0
        while offset + 8 <= body.count {
            hash = mix(hash ^ UInt64(littleEndian: body.loadUnaligned(fromByteOffset: offset, as: UInt64.self)))
            offset += 8
        }
        var rest: UInt64 = 0
        while offset < body.count {
            rest = rest << 8 | UInt64(body[offset])
            offset += 1
        }
        return mix(mix(mix(hash ^ rest) ^ UInt64(bitPattern: last)) ^ UInt64(partition))
    }

    private static func mix(_ value: UInt64) -> UInt64 {
        let product = value &* 0x9e37_79b9_7f4a_7c15
        return product ^ product >> 32
    }
}
