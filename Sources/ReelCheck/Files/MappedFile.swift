#if canImport(Darwin)
internal import Darwin
#elseif canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#endif

/// The bytes of a file, mapped into memory.
final class MappedFile: @unchecked Sendable {
    /// The file's name without its folder.
    let name: String
    let bytes: UnsafeRawBufferPointer

    init(_ path: String) throws(Fault) {
        name = path.split(separator: "/").last.map(String.init) ?? path
        let file = open(path, O_RDONLY | O_CLOEXEC)
        guard file >= 0 else { throw Fault("`\(path)` cannot be read: \(String(cString: strerror(errno)))") }
        defer { close(file) }
        var status = stat()
        guard fstat(file, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
            throw Fault("`\(path)` is no file")
        }
        let count = Int(status.st_size)
        guard count > 0 else {
            bytes = UnsafeRawBufferPointer(start: nil, count: 0)
            return
        }
        guard let start = mmap(nil, count, PROT_READ, MAP_PRIVATE, file, 0), start != MAP_FAILED else {
            throw Fault("`\(path)` cannot be read: \(String(cString: strerror(errno)))")
        }
        bytes = UnsafeRawBufferPointer(start: start, count: count)
    }

    deinit {
        if let start = bytes.baseAddress { munmap(UnsafeMutableRawPointer(mutating: start), bytes.count) }
    }

    /// Returns the end of the line that begins at this offset, which is the offset of its line feed; nil if there is
    /// none.
    func end(ofLineAt start: Int) -> Int? {
        guard start < bytes.count, let base = bytes.baseAddress,
            let end = memchr(base + start, 0x0A, bytes.count - start)
        else { return nil }
        return UnsafeRawPointer(end) - base
    }

    /// Calls `body` with the range of each complete line. Bytes after the last line feed are not a line.
    func eachLine(_ body: (Range<Int>) throws(Fault) -> Void) throws(Fault) {
        var start = 0
        while let end = end(ofLineAt: start) {
            if end > start { try body(start..<end) }
            start = end + 1
        }
    }

    /// True if the last line is incomplete.
    var isCut: Bool { bytes.last.map { $0 != 0x0A } ?? false }

    /// Returns the place of a line in a readable form: `NAME:LINE`.
    func place(lineAt start: Int) -> String {
        var number = 1
        var next = 0
        while next < start, let end = end(ofLineAt: next) {
            number += 1
            next = end + 1
        }
        return "\(name):\(number)"
    }

    /// Returns a quote of the line.
    func quote(lineAt start: Int) -> Quote { Quote(file: self, start: start) }
}

/// Returns the names of the entries of a folder, sorted.
func names(in folder: String) throws(Fault) -> [String] {
    guard let stream = opendir(folder) else {
        throw Fault("the folder `\(folder)` cannot be read: \(String(cString: strerror(errno)))")
    }
    defer { closedir(stream) }
    var names: [String] = []
    while let entry = readdir(stream) {
        names.append(
            withUnsafePointer(to: &entry.pointee.d_name) {
                $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
            }
        )
    }
    return names.sorted()
}
