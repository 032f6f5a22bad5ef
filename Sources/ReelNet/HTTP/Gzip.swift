import CZlib

/// A gzip packer (RFC 1952) that takes a body in pieces. One thread at a time may use it.
final class Gzip: @unchecked Sendable {
    /// The state of zlib. zlib keeps a pointer to it, so it must not move.
    private let stream = UnsafeMutablePointer<z_stream>.allocate(capacity: 1)

    /// Creates a packer. Returns nil if there is no memory for it.
    init?() {
        stream.initialize(to: z_stream())
        // The fastest level: on events it packs nearly as well as the default, in a third of the time.
        let status = deflateInit2_(
            stream,
            Z_BEST_SPEED,
            Z_DEFLATED,
            MAX_WBITS + 16,
            8,
            Z_DEFAULT_STRATEGY,
            ZLIB_VERSION,
            Int32(MemoryLayout<z_stream>.size)
        )
        if status != Z_OK { return nil }
    }

    deinit {
        deflateEnd(stream)
        stream.deallocate()
    }

    /// Returns the packed bytes for `bytes`, which may be none yet. With `isLast` it returns all remaining bytes too.
    func pack(_ bytes: [UInt8], isLast: Bool) -> [UInt8] {
        var packed: [UInt8] = []
        var bytes = bytes
        bytes.withUnsafeMutableBufferPointer { input in
            stream.pointee.next_in = input.baseAddress
            stream.pointee.avail_in = UInt32(clamping: input.count)
            repeat {
                let piece = 64 << 10
                packed += [UInt8](unsafeUninitializedCapacity: piece) { output, count in
                    stream.pointee.next_out = output.baseAddress
                    stream.pointee.avail_out = UInt32(piece)
                    deflate(stream, isLast ? Z_FINISH : Z_NO_FLUSH)
                    count = piece - Int(stream.pointee.avail_out)
                }
            } while stream.pointee.avail_out == 0
        }
        return packed
    }
}

/// The body of a response that is packed with gzip. The pieces are packed in order on the pool of `offload`, so that no
/// connection waits for it.
final class PackedBody {
    /// The smallest body in bytes that is worth packing.
    static let bytesMin = 1_024

    /// The number of bytes that are not packed yet.
    private(set) var pendingBytes = 0
    private let loop: EventLoop
    private let gzip: Gzip
    private var waiting: [[UInt8]] = []
    private var isEnding = false
    private var isPacking = false
    private let packed: (_ bytes: [UInt8], _ isLast: Bool) -> Void

    /// Creates a body. `packed` is called on the loop with the packed bytes. Returns nil if there is no memory for it.
    init?(on loop: EventLoop, packed: @escaping (_ bytes: [UInt8], _ isLast: Bool) -> Void) {
        guard let gzip = Gzip() else { return nil }
        self.loop = loop
        self.gzip = gzip
        self.packed = packed
    }

    func write(_ bytes: [UInt8]) {
        waiting.append(bytes)
        pendingBytes += bytes.count
        packNext()
    }

    func end() {
        isEnding = true
        packNext()
    }

    private func packNext() {
        guard !isPacking, isEnding || !waiting.isEmpty else { return }
        isPacking = true
        let (pieces, isLast, gzip) = (waiting, isEnding, gzip)
        waiting = []
        loop.offload {
            var packed: [UInt8] = []
            for piece in pieces { packed += gzip.pack(piece, isLast: false) }
            return isLast ? packed + gzip.pack([], isLast: true) : packed
        } then: { [self] bytes in
            pendingBytes -= pieces.reduce(0) { $0 + $1.count }
            isPacking = false
            packed(bytes, isLast)
            if !isLast { packNext() }
        }
    }
}

@available(*, unavailable)
extension PackedBody: Sendable {}

extension HTTPRequestHead {
    /// True if the client can read a gzip body (RFC 9110, 12.5.3).
    public var acceptsGzip: Bool {
        guard !isOld else { return false }
        var qualities: [Substring: Bool] = [:]
        for coding in headers.tokens("accept-encoding") {
            let parts = coding.lowercased().filter { $0 != " " && $0 != "\t" }.split(separator: ";")
            guard let name = parts.first else { continue }
            let quality = parts.dropFirst().first { $0.hasPrefix("q=") }?.dropFirst(2)
            qualities[name] = quality.map { $0.contains { ("1"..."9").contains($0) } } ?? true
        }
        return qualities["gzip"] ?? qualities["x-gzip"] ?? qualities["*"] ?? false
    }
}
