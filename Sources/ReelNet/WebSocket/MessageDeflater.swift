import CZlib

/// A packer of messages for permessage-deflate, each message without context of others. One packer serves all the
/// sockets of a loop, because its window takes a quarter of a megabyte.
final class MessageDeflater {
    /// The smallest payload in bytes that is worth packing.
    static let bytesMin = 128
    /// The end of each packed message, which is not sent (RFC 7692, 7.2.1).
    fileprivate static let tail: [UInt8] = [0x00, 0x00, 0xff, 0xff]

    /// The state of zlib. zlib keeps a pointer to it, so it must not move.
    private let stream = UnsafeMutablePointer<z_stream>.allocate(capacity: 1)

    /// Creates a packer. Returns nil if there is no memory for it.
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

    /// Returns the packed payload; nil if packing does not make it smaller.
    func pack(_ payload: UnsafeRawBufferPointer) -> [UInt8]? {
        guard payload.count >= Self.bytesMin, payload.count < Int(UInt32.max) else { return nil }
        deflateReset(stream)
        // zlib does not change its input.
        let input = UnsafeMutableRawPointer(mutating: payload.baseAddress)?.assumingMemoryBound(to: UInt8.self)
        (stream.pointee.next_in, stream.pointee.avail_in) = (input, UInt32(payload.count))
        let room = payload.count + Self.tail.count
        var packed = [UInt8](unsafeUninitializedCapacity: room) { output, count in
            (stream.pointee.next_out, stream.pointee.avail_out) = (output.baseAddress, UInt32(room))
            deflate(stream, Z_SYNC_FLUSH)
            count = room - Int(stream.pointee.avail_out)
        }
        // The buffer is full: more output would follow, or packing has saved nothing.
        guard packed.count < room, packed.suffix(Self.tail.count) == Self.tail[...] else { return nil }
        packed.removeLast(Self.tail.count)
        return packed
    }
}

@available(*, unavailable)
extension MessageDeflater: Sendable {}

/// An unpacker of permessage-deflate messages without context takeover.
enum MessageInflater {
    enum Failure: Error {
        case tooLarge
        case damaged
    }

    /// The limit on final blocks in one message. No real sender needs more.
    private static let endsMax = 256

    /// Returns the unpacked message, of at most `limit` bytes. It never produces more than `limit + 1` bytes.
    ///
    /// - Throws: `tooLarge`, or `damaged` if the payload cannot be unpacked.
    static func unpack(_ payload: [UInt8], limit: Int) throws(Failure) -> [UInt8] {
        // zlib keeps a pointer to it, so it must not move.
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
        /// True if the input up to here ends with a block. A call that finds nothing more to do does not report it
        /// again.
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
                // A final block; others may follow it (RFC 7692, 7.2.3.4).
                if stream.pointee.avail_in == 0 { return message }
                // Each final block costs much more than its two bytes.
                ends += 1
                guard ends < endsMax else { throw .damaged }
                inflateReset(stream)
            default: throw .damaged
            }
        }
    }
}
