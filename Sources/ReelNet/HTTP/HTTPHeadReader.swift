/// A reader that gathers the lines of a head from bytes that arrive in pieces of any size, and checks them at once.
/// Each line has to end with CRLF. It refuses a blank before the colon, a folded line and a control byte.
struct HTTPHeadReader {
    private var line: [UInt8] = []
    private var total = 0
    private var hasFirstLine = false
    private var skippedEmptyLine = false

    /// The first line, without its CRLF.
    private(set) var firstLine: [UInt8] = []
    /// The fields that were read.
    private(set) var headers = HTTPHeaders()

    /// True if no byte has arrived.
    var isEmpty: Bool { total == 0 }

    /// Reads bytes up to the end of the head. Returns true once the end is reached; `position` is then the index after
    /// it.
    mutating func read(
        _ bytes: Span<UInt8>,
        _ position: inout Int,
        _ limits: HTTPLimits
    ) throws(HTTPViolation) -> Bool {
        while position < bytes.count {
            if line.last != 0x0D {
                takeText(bytes, &position, limits)
                try check(limits)
                guard position < bytes.count else { break }
            }
            let byte = bytes[position]
            position += 1
            total += 1
            try check(limits)
            if line.last == 0x0D {
                guard byte == 0x0A else { throw HTTPViolation(400, "CR without LF in the head") }
                line.removeLast()
                if try endLine(limits) { return true }
                continue
            }
            guard byte != 0x0A else { throw HTTPViolation(400, "LF without CR in the head") }
            guard byte == 0x0D else {
                let isTLS = total == 1 && (byte == 0x15 || byte == 0x16)
                throw HTTPViolation(
                    400,
                    isTLS ? "TLS was spoken where plain HTTP is: http:// or https://?" : "a control byte in the head"
                )
            }
            line.append(byte)
            try check(limits)
        }
        return false
    }

    /// Reads the text of a line. It takes at most one byte more than a limit allows, so that `check` sees the excess.
    private mutating func takeText(_ bytes: Span<UInt8>, _ position: inout Int, _ limits: HTTPLimits) {
        var room = limits.head - total + 1
        if !hasFirstLine { room = min(room, limits.line - line.count + 1) }
        var end = position
        let last = min(bytes.count, position + max(0, room))
        while end < last, HTTPCharacters.isValue(bytes[end]) { end += 1 }
        bytes.extracting(position..<end).withUnsafeBufferPointer { line.append(contentsOf: $0) }
        total += end - position
        position = end
    }

    private func check(_ limits: HTTPLimits) throws(HTTPViolation) {
        if total > limits.head {
            throw HTTPViolation(431, "the head has more than \(limits.head) bytes")
        }
        if !hasFirstLine, line.count > limits.line {
            throw HTTPViolation(414, "the first line has more than \(limits.line) bytes")
        }
    }

    private mutating func endLine(_ limits: HTTPLimits) throws(HTTPViolation) -> Bool {
        defer { line.removeAll(keepingCapacity: true) }
        if !hasFirstLine {
            if line.isEmpty {
                // RFC 9112, 2.2: an old client may send one CRLF too many after a body.
                guard !skippedEmptyLine else { throw HTTPViolation(400, "an empty line before the request") }
                skippedEmptyLine = true
                total = 0
                return false
            }
            hasFirstLine = true
            firstLine = line
            return false
        }
        if line.isEmpty { return true }
        guard headers.fields.count < limits.fields else {
            throw HTTPViolation(431, "more than \(limits.fields) header fields")
        }
        try addField()
        return false
    }

    private mutating func addField() throws(HTTPViolation) {
        guard line[0] != 0x20, line[0] != 0x09 else { throw HTTPViolation(400, "a folded header line") }
        guard let colon = line.firstIndex(of: UInt8(ascii: ":")), colon > 0,
            line[..<colon].allSatisfy(HTTPCharacters.isToken)
        else { throw HTTPViolation(400, "a header line that does not begin with a name and a colon") }
        var value = line[(colon + 1)...]
        while let first = value.first, first == 0x20 || first == 0x09 { value.removeFirst() }
        while let last = value.last, last == 0x20 || last == 0x09 { value.removeLast() }
        headers.add(String(decoding: line[..<colon], as: UTF8.self), String(decoding: value, as: UTF8.self))
    }
}
