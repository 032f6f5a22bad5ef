import Glibc
import ReelCore

/// Bytes that are written once and read by any number of readers, each at its own pace. A small spool is in memory, a
/// large one in a file without a name. A slow reader therefore holds neither the database nor much memory.
final class Spool: Sendable {
    /// The size from which on a spool is in a file, in bytes.
    static let memoryBytes = 1 << 20
    /// The size of a piece that is read at once, in bytes.
    static let pieceBytes = 256 << 10

    /// The error of a disk that did not accept the spooled bytes.
    struct NoRoom: Error {
        var reason: String
    }

    /// The number of bytes.
    let count: Int
    private let bytes: [UInt8]
    private let descriptor: Int32

    /// All bytes; nil: they are in a file.
    var memory: [UInt8]? { descriptor < 0 ? bytes : nil }

    /// Collects the bytes that `produce` appends, until it returns false. The file, if one is needed, is made in
    /// `folder`.
    ///
    /// - Throws: `NoRoom`, and the errors of `produce`.
    init(folder: String, _ produce: (inout [UInt8]) throws -> Bool) throws {
        var bytes: [UInt8] = []
        var written = 0
        var descriptor: Int32 = -1
        do {
            while try produce(&bytes) {
                guard bytes.count >= Self.memoryBytes else { continue }
                if descriptor < 0 { descriptor = try Self.file(folder) }
                try Self.write(bytes, to: descriptor)
                written += bytes.count
                bytes.removeAll(keepingCapacity: true)
            }
            if descriptor >= 0 {
                try Self.write(bytes, to: descriptor)
                written += bytes.count
                bytes = []
            } else {
                written = bytes.count
            }
        } catch {
            if descriptor >= 0 { close(descriptor) }
            throw error
        }
        self.bytes = bytes
        self.descriptor = descriptor
        count = written
    }

    deinit {
        if descriptor >= 0 { close(descriptor) }
    }

    /// Returns the piece that begins at `offset`; empty at the end. May block on the disk.
    func piece(from offset: Int) throws(SnapshotError) -> [UInt8] {
        let length = min(Self.pieceBytes, count - offset)
        if descriptor < 0 { return Array(bytes[offset..<offset + length]) }
        var failure: Int32 = 0
        let piece = [UInt8](unsafeUninitializedCapacity: length) { buffer, filled in
            while filled < length {
                let read = pread(descriptor, buffer.baseAddress! + filled, length - filled, off_t(offset + filled))
                guard read > 0 else {
                    failure = read == 0 ? EIO : errno
                    return
                }
                filled += read
            }
        }
        guard failure == 0 else {
            throw SnapshotError(.internal, "cannot read a spooled snapshot: \(String(cString: strerror(failure)))")
        }
        return piece
    }

    private static func file(_ folder: String) throws(NoRoom) -> Int32 {
        var template = Array("\(folder)/spoolXXXXXX".utf8CString)
        let descriptor = mkstemp(&template)
        guard descriptor >= 0 else {
            throw NoRoom(reason: "cannot make a file in \(folder): \(String(cString: strerror(errno)))")
        }
        unlink(template)
        return descriptor
    }

    private static func write(_ bytes: [UInt8], to descriptor: Int32) throws(NoRoom) {
        var offset = 0
        while offset < bytes.count {
            let written = bytes.withUnsafeBytes {
                Glibc.write(descriptor, $0.baseAddress! + offset, bytes.count - offset)
            }
            guard written > 0 else {
                throw NoRoom(reason: "cannot spool a snapshot: \(String(cString: strerror(errno)))")
            }
            offset += written
        }
    }
}
