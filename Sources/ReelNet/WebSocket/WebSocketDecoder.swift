/// A violation of the protocol, for which a WebSocket has to be closed.
public struct WebSocketViolation: Error, Hashable, Sendable {
    /// The code of the close frame: 1002, 1007, 1009 or 1013.
    public let code: UInt16
    /// A text for people that says what was found.
    public let detail: String
}

/// A decoder for the frames of RFC 6455 that takes bytes in pieces of any size and joins fragments. It refuses what the
/// RFC forbids as soon as it can be seen. It has no socket and no clock.
public struct WebSocketDecoder {
    /// The side that reads.
    public enum Role: Sendable {
        /// Reads frames of clients: every frame must be masked.
        case server
        /// Reads frames of servers: no frame may be masked.
        case client
    }

    /// A decoded message or control frame.
    public enum Event: Hashable, Sendable {
        /// A complete text message, valid UTF-8.
        case text([UInt8])
        /// A complete binary message.
        case binary([UInt8])
        /// A ping, with the payload that the pong has to return.
        case ping([UInt8])
        /// A pong.
        case pong([UInt8])
        /// A close frame; the code is nil if it had none. All bytes after it are ignored.
        case close(code: UInt16?, reason: String)
    }

    private enum State {
        case first
        case second
        case length(left: UInt8)
        case mask(left: UInt8)
        case payload
        case closed
        case failed
    }

    // Each WebSocket has a decoder, so the order of the fields leaves no padding between them.
    /// The largest accepted message in bytes, both packed and unpacked. A change is valid for frames that begin after
    /// it.
    var maxMessage: Int
    private var length: UInt64 = 0
    private var read = 0
    private var message: [UInt8] = []
    private var control: [UInt8] = []
    private var mask: UInt32 = 0
    /// The smallest length that needs the form in which the length is written.
    private var shortest: UInt32 = 0
    private var state = State.first
    private var utf8 = UTF8Checker()
    private var opcode = WebSocketFrame.Opcode.text
    /// The type of the message that is being joined from fragments; nil between two messages.
    private var kind: WebSocketFrame.Opcode?
    private var isFinal = true
    private var isPacked = false
    /// True if messages are skipped.
    private var drops = false
    private let role: Role
    /// True if messages may be packed (permessage-deflate).
    private let inflates: Bool

    /// Creates a decoder for a new connection.
    ///
    /// - Parameters:
    ///   - role: The side that reads.
    ///   - maxMessage: The largest accepted message in bytes, both packed and unpacked.
    ///   - inflates: True if both sides have agreed on permessage-deflate without context takeover.
    public init(_ role: Role, maxMessage: Int, inflates: Bool = false) {
        self.role = role
        self.inflates = inflates
        self.maxMessage = maxMessage
    }

    /// The number of bytes of a message that is not complete yet.
    var heldBytes: Int { message.count }

    /// Skips messages from now on, without unpacking or keeping them. Control frames are still returned.
    mutating func dropMessages() {
        drops = true
        message = []
    }

    /// Returns the next event in the bytes from `position` on, and moves `position` after it. Returns nil if more bytes
    /// are needed.
    ///
    /// - Throws: The violation. The connection cannot be used any further then.
    public mutating func next(_ bytes: Span<UInt8>, _ position: inout Int) throws(WebSocketViolation) -> Event? {
        do throws(WebSocketViolation) {
            while true {
                if case .closed = state {
                    position = bytes.count
                    return nil
                }
                if case .payload = state {
                    try readPayload(bytes, &position)
                    guard read == Int(length) else { return nil }
                    state = .first
                    if let event = try endFrame() { return event }
                    continue
                }
                guard position < bytes.count else { return nil }
                try readHeader(bytes[position])
                position += 1
            }
        } catch {
            state = .failed
            throw error
        }
    }

    /// The number of bytes that have arrived of an incomplete message; nil if no message has begun.
    var partBytes: Int? {
        switch state {
        case .first where kind == nil, .closed, .failed: nil
        default: message.count + control.count
        }
    }

    // MARK: Header

    private mutating func readHeader(_ byte: UInt8) throws(WebSocketViolation) {
        switch state {
        case .first: try readFirst(byte)
        case .second: try readSecond(byte)
        case .length(let left):
            length = length << 8 | UInt64(byte)
            state = .length(left: left - 1)
            if left == 1 { try endLength() }
        case .mask(let left):
            mask = mask << 8 | UInt32(byte)
            state = left == 1 ? .payload : .mask(left: left - 1)
        case .failed: throw violation("bytes behind a violation")
        case .payload, .closed: break
        }
    }

    private mutating func readFirst(_ byte: UInt8) throws(WebSocketViolation) {
        let reserved = byte & 0x70
        guard reserved == 0 || inflates && reserved == WebSocketFrame.packedBit else {
            throw violation("a reserved bit is set")
        }
        guard let opcode = WebSocketFrame.Opcode(rawValue: byte & 0x0F) else { throw violation("a reserved opcode") }
        isFinal = byte & 0x80 != 0
        self.opcode = opcode
        switch opcode {
        case .continuation:
            guard kind != nil else { throw violation("a continuation of nothing") }
            guard reserved == 0 else { throw violation("a continuation that says that it is packed") }
        case .text, .binary:
            guard kind == nil else { throw violation("a new message inside a fragmented one") }
            kind = opcode
            isPacked = reserved != 0
        case .close, .ping, .pong:
            guard isFinal else { throw violation("a fragmented control frame") }
            guard reserved == 0 else { throw violation("a control frame that says that it is packed") }
        }
        state = .second
    }

    private mutating func readSecond(_ byte: UInt8) throws(WebSocketViolation) {
        guard (byte & 0x80 != 0) == (role == .server) else {
            throw violation(role == .server ? "a client's frame without mask" : "a server's frame with mask")
        }
        read = 0
        mask = 0
        length = 0
        let short = byte & 0x7F
        guard !opcode.isControl || short <= 125 else { throw violation("a control frame of more than 125 bytes") }
        switch short {
        case 126: (state, shortest) = (.length(left: 2), 126)
        case 127: (state, shortest) = (.length(left: 8), 65536)
        default:
            length = UInt64(short)
            try checkSize()
        }
    }

    private mutating func endLength() throws(WebSocketViolation) {
        guard length >> 63 == 0 else { throw violation("a length with its highest bit set") }
        guard length >= shortest else { throw violation("a length in more bytes than it needs") }
        try checkSize()
    }

    /// Checks the length before any byte of the payload is kept.
    private mutating func checkSize() throws(WebSocketViolation) {
        guard opcode.isControl || length <= UInt64(maxMessage - message.count) else {
            throw tooLarge
        }
        state = role == .server ? .mask(left: 4) : .payload
    }

    // MARK: Payload

    private mutating func readPayload(_ bytes: Span<UInt8>, _ position: inout Int) throws(WebSocketViolation) {
        let count = min(Int(length) - read, bytes.count - position)
        let part = bytes.extracting(position..<position + count)
        if drops, !opcode.isControl {
            // A skipped payload is only counted.
        } else if opcode.isControl {
            append(part, to: &control)
        } else {
            let start = message.count
            append(part, to: &message)
            if kind == .text, !isPacked {
                let isValid = message.withUnsafeBytes { utf8.check(UnsafeRawBufferPointer(rebasing: $0[start...])) }
                guard isValid else { throw Self.badText }
            }
        }
        read += count
        position += count
    }

    private func append(_ part: Span<UInt8>, to target: inout [UInt8]) {
        let start = target.count
        part.withUnsafeBufferPointer { target.append(contentsOf: $0) }
        if mask != 0 { WebSocketMask.apply(mask, to: &target, from: start, phase: read) }
    }

    private mutating func endFrame() throws(WebSocketViolation) -> Event? {
        if opcode.isControl {
            let payload = control
            control = []
            switch opcode {
            case .ping: return .ping(payload)
            case .pong: return .pong(payload)
            default: return try endClose(payload)
            }
        }
        guard isFinal else { return nil }
        if drops {
            kind = nil
            return nil
        }
        if isPacked { try unpack() }
        guard kind != .text || utf8.isComplete else { throw Self.badText }
        let payload = message
        let isText = kind == .text
        message = []
        kind = nil
        return isText ? .text(payload) : .binary(payload)
    }

    private mutating func unpack() throws(WebSocketViolation) {
        do throws(MessageInflater.Failure) {
            message = try MessageInflater.unpack(message, limit: maxMessage)
        } catch {
            switch error {
            case .tooLarge: throw tooLarge
            case .damaged: throw WebSocketViolation(code: 1007, detail: "a message that cannot be unpacked")
            }
        }
        guard kind != .text || message.withUnsafeBytes({ utf8.check($0) }) else { throw Self.badText }
    }

    private mutating func endClose(_ payload: [UInt8]) throws(WebSocketViolation) -> Event {
        guard payload.count != 1 else { throw violation("a close frame of one byte") }
        state = .closed
        message = []
        guard payload.count >= 2 else { return .close(code: nil, reason: "") }
        let code = UInt16(payload[0]) << 8 | UInt16(payload[1])
        switch code {
        case 1000...1003, 1007...1014, 3000...4999: break
        default: throw violation("the close code \(code)")
        }
        guard let reason = String(validating: payload[2...], as: UTF8.self) else { throw Self.badText }
        return .close(code: code, reason: reason)
    }

    private func violation(_ detail: String) -> WebSocketViolation {
        WebSocketViolation(code: 1002, detail: detail)
    }

    private var tooLarge: WebSocketViolation {
        WebSocketViolation(code: 1009, detail: "a message of more than \(maxMessage) bytes")
    }

    private static let badText = WebSocketViolation(code: 1007, detail: "text that is no UTF-8")
}
