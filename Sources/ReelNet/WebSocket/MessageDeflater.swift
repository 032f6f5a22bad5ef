import CZlib

/// Packs messages for permessage-deflate, each by itself. One serves all the sockets of a loop: its window takes a
/// quarter of a megabyte.
final class MessageDeflater {
    /// Fewer bytes are not worth it.
    static let bytesMin = 128
    /// What a message ends with, and is not sent (RFC 7692, 7.2.1).
    fileprivate static let tail: [UInt8] = [0x00, 0x00, 0xff, 0xff]

    /// zlib keeps a pointer to it: it may not move.
    private let stream = UnsafeMutablePointer<z_stream>.allocate(capacity: 1)

    /// Nil where there is no memory for it.
    init?() {
        stream.initialize(to: z_stream())
        let size = Int32(MemoryLayout<z_stream>.size)
        let status = deflateInit2_(
            stream,
            Z_BEST_SPEED,
            Z_DEFLATED,
            -MAX_WBITS,
            8,
            Z_DEFAULT_STRATEGY,
            ZLIB_VERSION,
            size
        )
        if status != Z_OK { return nil }
    }

    deinit {
        deflateEnd(stream)
        stream.deallocate()
    }

    /// The payload, packed; nil where that does not make it smaller.
    func pack(_ payload: UnsafeRawBufferPointer) -> [UInt8]? {
        guard payload.count >= Self.bytesMin, payload.count < Int(UInt32.max) else { return nil }
        deflateReset(stream)
        // zlib does not change what it reads.
        let input = UnsafeMutableRawPointer(mutating: payload.baseAddress)?.assumingMemoryBound(to: UInt8.self)
        (stream.pointee.next_in, stream.pointee.avail_in) = (input, UInt32(payload.count))
        let room = payload.count + Self.tail.count
        var packed = [UInt8](unsafeUninitializedCapacity: room) { output, count in
            (stream.pointee.next_out, stream.pointee.avail_out) = (output.baseAddress, UInt32(room))
            deflate(stream, Z_SYNC_FLUSH)
            count = room - Int(stream.pointee.avail_out)
        }
        // Full: there is more, or nothing was won.
        guard packed.count < room, packed.suffix(Self.tail.count) == Self.tail[...] else { return nil }
        packed.removeLast(Self.tail.count)
        return packed
    }
}

@available(*, unavailable)
extension MessageDeflater: Sendable {}

/// Unpacks a message of permessage-deflate whose sender keeps nothing from one to the next.
enum MessageInflater {
    enum Failure: Error {
        case tooLarge
        case damaged
    }

    /// More last blocks than these nobody needs.
    private static let endsMax = 256

    /// The message, of at most so many bytes: no more than these, and one, are ever made.
    static func unpack(_ payload: [UInt8], limit: Int) throws(Failure) -> [UInt8] {
        // zlib keeps a pointer to it: it may not move.
        let stream = UnsafeMutablePointer<z_stream>.allocate(capacity: 1)
        stream.initialize(to: z_stream())
        defer { stream.deallocate() }
        let size = Int32(MemoryLayout<z_stream>.size)
        guard inflateInit2_(stream, -MAX_WBITS, ZLIB_VERSION, size) == Z_OK else { throw .damaged }
        defer { inflateEnd(stream) }
        var input = payload + MessageDeflater.tail
        let result = input.withUnsafeMutableBufferPointer { input in
            (stream.pointee.next_in, stream.pointee.avail_in) = (input.baseAddress, UInt32(clamping: input.count))
            return Result { () throws(Failure) in try unpack(stream, limit: limit) }
        }
        return try result.get()
    }

    private static func unpack(_ stream: UnsafeMutablePointer<z_stream>, limit: Int) throws(Failure) -> [UInt8] {
        var message: [UInt8] = []
        /// What came so far ends with a block; a call that finds nothing more to do does not say it again.
        var isWhole = false
        var ends = 0
        while true {
            let room = min(max(16 << 10, message.count), limit - message.count + 1)
            var status = Z_OK
            message += [UInt8](unsafeUninitializedCapacity: room) { output, count in
                (stream.pointee.next_out, stream.pointee.avail_out) = (output.baseAddress, UInt32(clamping: room))
                status = inflate(stream, Z_SYNC_FLUSH)
                count = room - Int(stream.pointee.avail_out)
            }
            guard message.count <= limit else { throw .tooLarge }
            switch status {
            case Z_OK, Z_BUF_ERROR:
                if status == Z_OK { isWhole = stream.pointee.data_type & 128 != 0 }
                if stream.pointee.avail_in > 0 || stream.pointee.avail_out == 0 { continue }
                guard isWhole else { throw .damaged }
                return message
            case Z_STREAM_END:
                // A last block, behind which others may come (RFC 7692, 7.2.3.4).
                if stream.pointee.avail_in == 0 { return message }
                // Each costs much more than its two bytes.
                ends += 1
                guard ends < endsMax else { throw .damaged }
                inflateReset(stream)
            default: throw .damaged
            }
        }
    }
}
