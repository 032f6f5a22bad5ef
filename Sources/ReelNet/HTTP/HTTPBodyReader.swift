/// The rule by which the end of a message's body is found.
enum HTTPFraming: Equatable {
    case length(Int)
    case chunked
    /// The body ends with the connection. Only for a response.
    case untilClose

    /// Reads the rule from the head; nil if the head has none. A head that two readers could understand differently is
    /// refused.
    init?(_ headers: HTTPHeaders, isOld: Bool) throws(HTTPViolation) {
        let codings = headers.all("transfer-encoding")
        let lengths = headers.all("content-length")
        if !codings.isEmpty {
            guard lengths.isEmpty else {
                throw HTTPViolation(400, "Content-Length together with Transfer-Encoding")
            }
            guard !isOld else { throw HTTPViolation(400, "Transfer-Encoding in HTTP/1.0") }
            guard codings.count == 1, codings[0].lowercased() == "chunked" else {
                throw HTTPViolation(501, "a Transfer-Encoding other than chunked")
            }
            self = .chunked
        } else if let text = lengths.first {
            guard lengths.count == 1 else { throw HTTPViolation(400, "Content-Length more than once") }
            guard !text.isEmpty, text.utf8.allSatisfy({ (48...57).contains($0) }) else {
                throw HTTPViolation(400, "a Content-Length that is no number")
            }
            guard let length = Int(text) else { throw HTTPViolation(413, "a Content-Length beyond all bounds") }
            self = .length(length)
        } else {
            return nil
        }
    }
}

/// A reader that finds the body in bytes that arrive in pieces of any size.
struct HTTPBodyReader {
    /// A part of the message.
    enum Part: Equatable {
        /// These bytes of the input belong to the body.
        case data(Range<Int>)
        /// The message is complete.
        case end
    }

    private enum State {
        case data(left: Int)
        case size(value: Int, digits: Int)
        case extra(value: Int)
        case sizeLF(value: Int)
        case chunk(left: Int)
        case chunkCR
        case chunkLF
        case trailerStart
        case trailer
        case trailerLF
        case lastLF
        case untilClose
        case done
    }

    private var state: State
    private var extras = 0

    init(_ framing: HTTPFraming) {
        switch framing {
        case .length(let length): state = .data(left: length)
        case .chunked: state = .size(value: 0, digits: 0)
        case .untilClose: state = .untilClose
        }
    }

    /// True if the body ends with the connection.
    var endsWithConnection: Bool {
        if case .untilClose = state { true } else { false }
    }

    /// Returns the next part from `position` on, and moves `position` after it. Returns nil if more bytes are needed.
    mutating func next(
        _ bytes: Span<UInt8>,
        _ position: inout Int,
        _ limits: HTTPLimits
    ) throws(HTTPViolation) -> Part? {
        while true {
            switch state {
            case .done: return nil
            case .data(left: 0):
                state = .done
                return .end
            case .chunk(left: 0): state = .chunkCR
            default: break
            }
            guard position < bytes.count else { return nil }
            switch state {
            case .data(let left):
                let range = position..<position + min(left, bytes.count - position)
                state = .data(left: left - range.count)
                position = range.upperBound
                return .data(range)
            case .chunk(let left):
                let range = position..<position + min(left, bytes.count - position)
                state = .chunk(left: left - range.count)
                position = range.upperBound
                return .data(range)
            case .untilClose:
                let range = position..<bytes.count
                position = range.upperBound
                return .data(range)
            default:
                let byte = bytes[position]
                position += 1
                if try step(byte, limits) { return .end }
            }
        }
    }

    /// Reads one byte between two chunks. Returns true at the end of the message.
    private mutating func step(_ byte: UInt8, _ limits: HTTPLimits) throws(HTTPViolation) -> Bool {
        switch state {
        case .size(let value, let digits): try stepSize(byte, value, digits)
        case .extra(let value):
            try countExtra(limits)
            if byte == 0x0D {
                state = .sizeLF(value: value)
            } else {
                guard HTTPCharacters.isValue(byte) else { throw Self.bad }
            }
        case .sizeLF(let value):
            guard byte == 0x0A else { throw Self.bad }
            state = value == 0 ? .trailerStart : .chunk(left: value)
        case .chunkCR:
            guard byte == 0x0D else { throw Self.bad }
            state = .chunkLF
        case .chunkLF:
            guard byte == 0x0A else { throw Self.bad }
            state = .size(value: 0, digits: 0)
        case .trailerStart:
            if byte == 0x0D {
                state = .lastLF
            } else {
                try countExtra(limits)
                guard HTTPCharacters.isToken(byte) else { throw Self.bad }
                state = .trailer
            }
        case .trailer:
            try countExtra(limits)
            if byte == 0x0D {
                state = .trailerLF
            } else {
                guard HTTPCharacters.isValue(byte) else { throw Self.bad }
            }
        case .trailerLF:
            guard byte == 0x0A else { throw Self.bad }
            state = .trailerStart
        case .lastLF:
            guard byte == 0x0A else { throw Self.bad }
            state = .done
            return true
        case .data, .chunk, .untilClose, .done: break
        }
        return false
    }

    private mutating func stepSize(_ byte: UInt8, _ value: Int, _ digits: Int) throws(HTTPViolation) {
        if let digit = HTTPCharacters.hex(byte) {
            guard digits < 15 else { throw HTTPViolation(413, "a chunk beyond all bounds") }
            state = .size(value: value << 4 | Int(digit), digits: digits + 1)
            return
        }
        guard digits > 0 else { throw Self.bad }
        switch byte {
        case 0x0D: state = .sizeLF(value: value)
        case UInt8(ascii: ";"): state = .extra(value: value)
        default: throw Self.bad
        }
    }

    private mutating func countExtra(_ limits: HTTPLimits) throws(HTTPViolation) {
        extras += 1
        guard extras <= limits.chunkExtras else {
            throw HTTPViolation(400, "chunk extensions and trailers of more than \(limits.chunkExtras) bytes")
        }
    }

    private static let bad = HTTPViolation(400, "a chunk that is not as RFC 9112 has it")
}
