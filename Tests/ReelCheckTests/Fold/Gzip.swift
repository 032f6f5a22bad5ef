import CZlib
import Foundation

/// Returns the uncompressed contents of a gzip file.
func unzipped(_ path: String) throws -> [UInt8] {
    guard let file = gzopen(path, "rb") else { throw CocoaError(.fileReadNoSuchFile) }
    defer { gzclose(file) }
    var bytes: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 1 << 20)
    while true {
        let count = gzread(file, &buffer, UInt32(buffer.count))
        guard count >= 0 else { throw CocoaError(.fileReadCorruptFile) }
        if count == 0 { return bytes }
        bytes += buffer[..<Int(count)]
    }
}
