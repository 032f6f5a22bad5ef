import Synchronization

/// A frame of a server, encoded once and written to any number of sockets. For sockets with permessage-deflate it is
/// packed once, when it is first written to one of them. Any thread may use it.
public struct WebSocketFrame: Hashable, Sendable {
    /// The frame as it is sent: header and payload.
    public private(set) var bytes: [UInt8]
    private var packed = Packed()

    /// The packed form of the frame, for sockets with permessage-deflate; nil until the first of them needs it.
    private final class Packed: Sendable {
        let bytes = Mutex<[UInt8]?>(nil)
    }

    private init(bytes: [UInt8]) {
        self.bytes = bytes
    }

    init(_ opcode: Opcode, _ payload: [UInt8]) {
        self.init(bytes: Self.encode(opcode, payload, mask: nil))
    }

    /// Returns a complete text message. The payload must be UTF-8.
    public static func text(_ payload: [UInt8]) -> WebSocketFrame {
        WebSocketFrame(.text, payload)
    }

    /// Returns a complete text message with the joined pieces as payload, which together must be UTF-8.
    public static func text(joining pieces: [UInt8]...) -> WebSocketFrame {
        let count = pieces.reduce(0) { $0 + $1.count }
        var bytes = head(.text, count, isMasked: false, isFinal: true)
        for piece in pieces { bytes += piece }
        return WebSocketFrame(bytes: bytes)
    }

    /// Returns a complete binary message.
    public static func binary(_ payload: [UInt8]) -> WebSocketFrame {
        WebSocketFrame(.binary, payload)
    }

    /// Adds another frame after this one. They stay separate messages and are sent in one write.
    public mutating func append(_ frame: WebSocketFrame) {
        bytes += frame.bytes
        packed = Packed()
    }

    /// True if both frames have the same bytes.
    public static func == (a: WebSocketFrame, b: WebSocketFrame) -> Bool { a.bytes == b.bytes }

    /// Hashes the bytes.
    public func hash(into hasher: inout Hasher) { hasher.combine(bytes) }

    /// Returns the frames with each payload packed if that makes it smaller. Without a deflater it returns the frames
    /// unchanged.
    func packed(by deflater: MessageDeflater?) -> [UInt8] {
        guard let deflater else { return bytes }
        return packed.bytes.withLock { packed in
            if let packed { return packed }
            let bytes = pack(by: deflater)
            packed = bytes
            return bytes
        }
    }

    private func pack(by deflater: MessageDeflater) -> [UInt8] {
        var (packed, start) = ([UInt8](), 0)
        while start < bytes.count {
            let short = bytes[start + 1]
            let body = start + (short == 127 ? 10 : short == 126 ? 4 : 2)
            let count = short < 126 ? Int(short) : bytes[start + 2..<body].reduce(0) { $0 << 8 | Int($1) }
            let payload = bytes.withUnsafeBytes {
                deflater.pack(UnsafeRawBufferPointer(rebasing: $0[body..<body + count]))
            }
            if let payload, let opcode = Opcode(rawValue: bytes[start] & 0x0F) {
                var frame = Self.encode(opcode, payload, mask: nil)
                frame[0] |= Self.packedBit
                packed += frame
            } else {
                packed += bytes[start..<body + count]
            }
            start = body + count
        }
        return packed
    }

    /// The bit RSV1 of a frame's first byte: the message is packed.
    static let packedBit: UInt8 = 0x40

    enum Opcode: UInt8 {
        case continuation = 0
        case text = 1
        case binary = 2
        case close = 8
        case ping = 9
        case pong = 10

        var isControl: Bool { rawValue >= 8 }
    }

    /// Returns an encoded frame. A client has to give a `mask`.
    static func encode(_ opcode: Opcode, _ payload: [UInt8], mask: UInt32?, isFinal: Bool = true) -> [UInt8] {
        var bytes = head(opcode, payload.count, isMasked: mask != nil, isFinal: isFinal)
        guard let mask else {
            bytes += payload
            return bytes
        }
        for shift in stride(from: 24, through: 0, by: -8) { bytes.append(UInt8(truncatingIfNeeded: mask >> shift)) }
        let start = bytes.count
        bytes += payload
        WebSocketMask.apply(mask, to: &bytes, from: start, phase: 0)
        return bytes
    }

    /// Returns the bytes before the mask and the payload. The array has spare capacity for both.
    private static func head(_ opcode: Opcode, _ count: Int, isMasked: Bool, isFinal: Bool) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(count + 14)
        bytes.append(opcode.rawValue | (isFinal ? 0x80 : 0))
        let masked: UInt8 = isMasked ? 0x80 : 0
        switch count {
        case ..<126: bytes.append(UInt8(count) | masked)
        case ..<65536:
            bytes.append(126 | masked)
            bytes.append(UInt8(count >> 8))
            bytes.append(UInt8(truncatingIfNeeded: count))
        default:
            bytes.append(127 | masked)
            for shift in stride(from: 56, through: 0, by: -8) {
                bytes.append(UInt8(truncatingIfNeeded: count >> shift))
            }
        }
        return bytes
    }

    /// Returns the payload of a close frame: empty without a code. The reason is cut to the size of a control frame.
    static func closePayload(_ code: UInt16?, _ reason: String) -> [UInt8] {
        guard let code else { return [] }
        var text = reason
        while text.utf8.count > 123 { text.removeLast() }
        return [UInt8(code >> 8), UInt8(truncatingIfNeeded: code)] + text.utf8
    }
}

/// The masking of RFC 6455, 5.3.
enum WebSocketMask {
    /// Masks or unmasks the bytes from `start` to the end, eight bytes at a time. `mask` is big-endian as in the frame;
    /// `phase` is the number of payload bytes before `start`.
    static func apply(_ mask: UInt32, to bytes: inout [UInt8], from start: Int, phase: Int) {
        let turn = UInt32(phase & 3) * 8
        let turned = (mask << turn | mask >> ((32 - turn) & 31)).bigEndian
        let word = UInt64(turned) << 32 | UInt64(turned)
        bytes.withUnsafeMutableBytes { all in
            let part = UnsafeMutableRawBufferPointer(rebasing: all[start...])
            var index = 0
            while index + 8 <= part.count {
                let value = part.loadUnaligned(fromByteOffset: index, as: UInt64.self)
                part.storeBytes(of: value ^ word, toByteOffset: index, as: UInt64.self)
                index += 8
            }
            while index < part.count {
                part[index] ^= UInt8(truncatingIfNeeded: word >> (UInt64(index & 7) * 8))
                index += 1
            }
        }
    }
}
