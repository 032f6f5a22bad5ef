/// A frame of a server, encoded once and written to any number of sockets.
public struct WebSocketFrame: Hashable, Sendable {
    /// The frame as it goes over the wire: header and payload.
    public private(set) var bytes: [UInt8]

    /// A whole text message. The payload must be UTF-8.
    public static func text(_ payload: [UInt8]) -> WebSocketFrame {
        WebSocketFrame(bytes: encode(.text, payload, mask: nil))
    }

    /// A whole text message whose payload comes in pieces, which together must be UTF-8.
    public static func text(joining pieces: [UInt8]...) -> WebSocketFrame {
        let count = pieces.reduce(0) { $0 + $1.count }
        var bytes = head(.text, count, isMasked: false, isFinal: true)
        for piece in pieces { bytes += piece }
        return WebSocketFrame(bytes: bytes)
    }

    /// A whole binary message.
    public static func binary(_ payload: [UInt8]) -> WebSocketFrame {
        WebSocketFrame(bytes: encode(.binary, payload, mask: nil))
    }

    /// Adds another frame behind this one: they stay separate messages and go out in one write.
    public mutating func append(_ frame: WebSocketFrame) {
        bytes += frame.bytes
    }

    enum Opcode: UInt8 {
        case continuation = 0
        case text = 1
        case binary = 2
        case close = 8
        case ping = 9
        case pong = 10

        var isControl: Bool { rawValue >= 8 }
    }

    /// Encodes a frame; with a mask as a client has to.
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

    /// What stands before the mask and the payload; there is room for them behind it.
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

    /// The payload of a close frame: nothing without a code; the reason is cut to what a control frame can hold.
    static func closePayload(_ code: UInt16?, _ reason: String) -> [UInt8] {
        guard let code else { return [] }
        var text = reason
        while text.utf8.count > 123 { text.removeLast() }
        return [UInt8(code >> 8), UInt8(truncatingIfNeeded: code)] + text.utf8
    }
}

/// The masking of RFC 6455, 5.3.
enum WebSocketMask {
    /// Masks or unmasks from an index to the end, eight bytes at a time. The mask is big-endian as on the wire; the
    /// phase says how many bytes of the payload came before.
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
