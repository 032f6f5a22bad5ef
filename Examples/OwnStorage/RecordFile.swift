internal import ReelCore

#if canImport(Glibc)
internal import Glibc
#else
internal import Darwin
#endif

/// A file of records. Each record has its size and its checksum. Only one client has the file at a time, and one thread
/// may use it.
final class RecordFile {
    private static let header = Array("OwnStorage\n".utf8)
    /// The size and the checksum before a record.
    private static let prefixBytes = 12

    private var path: String
    private let descriptor: Int32
    /// The bytes of the header and all records.
    private(set) var size = 0

    /// Opens a file, or creates it.
    init(path: String) throws(ReelError) {
        self.path = path
        descriptor = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw Self.failed("open", path) }
        guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 else {
            throw ReelError(.storeBusy, "found the lock on \(path) taken, expected no other client")
        }
    }

    deinit {
        // A child process that is starting has a copy of the descriptor until its program begins.
        flock(descriptor, LOCK_UN)
        close(descriptor)
    }

    /// Calls `apply` with each record, until one is incomplete or `apply` returns false. Cuts the file there.
    func readAll(_ apply: ([UInt8]) throws(ReelError) -> Bool) throws(ReelError) {
        let length = Int(lseek(descriptor, 0, SEEK_END))
        if length == 0 { try write(Self.header, at: 0) }
        guard try read(at: 0, count: Self.header.count) == Self.header else {
            throw ReelError(.storeFormat, "found another program's file at \(path)")
        }
        size = Self.header.count
        while size + Self.prefixBytes <= length {
            let prefix = try read(at: size, count: Self.prefixBytes)
            let count = prefix[..<4].reversed().reduce(0) { $0 << 8 | Int($1) }
            guard size + Self.prefixBytes + count <= length else { break }
            let record = try read(at: size + Self.prefixBytes, count: count)
            guard prefix == Self.prefix(record), try apply(record) else { break }
            size += Self.prefixBytes + count
        }
        guard ftruncate(descriptor, off_t(size)) == 0 else { throw Self.failed("cut", path) }
    }

    /// Adds a record. If that fails, the next start does not find the record. An exception is a disk that does not let
    /// the file be cut.
    func append(_ record: [UInt8], durably: Bool) throws(ReelError) {
        do throws(ReelError) {
            try write(Self.prefix(record) + record, at: size)
            guard !durably || fsync(descriptor) == 0 else { throw Self.failed("write", path) }
            size += Self.prefixBytes + record.count
        } catch {
            ftruncate(descriptor, off_t(size))
            throw error
        }
    }

    /// Replaces another file. This client has the other file's lock.
    func takePlace(of other: String) throws(ReelError) {
        guard rename(path, other) == 0 else { throw Self.failed("rename", path) }
        path = other
        // The folder contains the name of the file, so the folder must reach the disk too.
        let folder = open(other.lastIndex(of: "/").map { String(other[...$0]) } ?? ".", O_RDONLY | O_CLOEXEC)
        defer { close(folder) }
        guard folder >= 0, fsync(folder) == 0 else { throw Self.failed("write the folder of", other) }
    }

    /// Deletes a file if it exists.
    static func remove(_ path: String) throws(ReelError) {
        guard unlink(path) == 0 || errno == ENOENT else { throw failed("delete", path) }
    }

    private func write(_ bytes: [UInt8], at offset: Int) throws(ReelError) {
        let count = bytes.withUnsafeBytes { pwrite(descriptor, $0.baseAddress, $0.count, off_t(offset)) }
        guard count == bytes.count else { throw Self.failed("write", path) }
    }

    private func read(at offset: Int, count: Int) throws(ReelError) -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: count)
        let got = bytes.withUnsafeMutableBytes { pread(descriptor, $0.baseAddress, count, off_t(offset)) }
        guard got == count else { throw Self.failed("read", path) }
        return bytes
    }

    /// The size and the checksum of a record. The checksum is FNV-1a (Fowler, Noll, Vo) with 64 bits.
    private static func prefix(_ record: [UInt8]) -> [UInt8] {
        var hash: UInt64 = 0xcbf2_9ce4_8422_2325
        record.withUnsafeBytes { for byte in $0 { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01b3 } }
        return withUnsafeBytes(of: UInt32(truncatingIfNeeded: record.count).littleEndian) { Array($0) }
            + withUnsafeBytes(of: hash.littleEndian) { Array($0) }
    }

    private static func failed(_ call: String, _ path: String) -> ReelError {
        ReelError(errno == ENOSPC ? .storeFull : .storeFailed, "\(call) \(path): \(String(cString: strerror(errno)))")
    }
}
