import CZlib

/// The unpacking of gzip, for the recorded sessions that are packed.
enum Gzip {
    /// The first two bytes of a gzip file.
    static let magic: [UInt8] = [0x1F, 0x8B]

    /// Returns the unpacked bytes. Nil if `packed` is not one whole gzip stream, or if there are more than `limit`
    /// bytes.
    static func unpacked(_ packed: [UInt8], limit: Int) -> [UInt8]? {
        var stream = z_stream()
        // 16 + 15: a gzip header, and the largest window.
        guard inflateInit2_(&stream, 31, ZLIB_VERSION, Int32(MemoryLayout<z_stream>.size)) == Z_OK else { return nil }
        defer { inflateEnd(&stream) }
        var unpacked: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 1 << 16)
        var packed = packed
        return packed.withUnsafeMutableBufferPointer { input in
            stream.next_in = input.baseAddress
            stream.avail_in = UInt32(clamping: input.count)
            while true {
                let status = chunk.withUnsafeMutableBufferPointer { output in
                    stream.next_out = output.baseAddress
                    stream.avail_out = UInt32(output.count)
                    return inflate(&stream, Z_NO_FLUSH)
                }
                unpacked += chunk.prefix(chunk.count - Int(stream.avail_out))
                if unpacked.count > limit { return nil }
                if status == Z_STREAM_END { return unpacked }
                guard status == Z_OK else { return nil }
            }
        }
    }
}
