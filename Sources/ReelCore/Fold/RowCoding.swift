/// Writes the storage form of a row. Numbers have groups of seven bits, lowest first; bytes follow their count. A site
/// that is the same as the preceding one costs one byte.
package struct RowWriter {
    package private(set) var bytes: [UInt8]
    private var lastSite: Site?

    /// Creates a writer that appends to these bytes.
    package init(_ bytes: consuming [UInt8]) {
        self.bytes = bytes
    }

    /// Writes a number that is at least −1.
    @inline(__always)
    package mutating func write(_ number: Int64) {
        var rest = UInt64(bitPattern: number &+ 1)
        while rest >= 0x80 {
            bytes.append(UInt8(truncatingIfNeeded: rest) | 0x80)
            rest >>= 7
        }
        bytes.append(UInt8(truncatingIfNeeded: rest))
    }

    /// Writes a flag.
    package mutating func write(_ flag: Bool) { bytes.append(flag ? 1 : 0) }

    /// Writes bytes after their count.
    package mutating func write(_ data: [UInt8]) {
        write(Int64(data.count))
        bytes += data
    }

    /// Writes a text or name with quotes added.
    mutating func write(quoted text: [UInt8]) {
        text.withUnsafeBytes { write(quoted: $0) }
    }

    /// Writes a text or name with quotes added.
    mutating func write(quoted text: Bytes) {
        write(Int64(text.count + 2))
        bytes.append(ASCII.quote)
        bytes.append(contentsOf: text)
        bytes.append(ASCII.quote)
    }

    mutating func write(_ mark: TextMark) {
        write(mark.seq)
        write(mark.site != lastSite)
        guard mark.site != lastSite else { return }
        lastSite = mark.site
        withUnsafeBytes(of: (mark.site.high.bigEndian, mark.site.low.bigEndian)) { bytes.append(contentsOf: $0) }
    }
}

/// Reads the form that `RowWriter` writes. Other bytes are an error of code `internal`: another program has changed the
/// store.
package struct RowReader {
    private let bytes: Bytes
    private var position = 0
    private var lastSite: Site?

    /// Creates a reader of these bytes, which must stay valid.
    package init(_ bytes: Bytes) {
        self.bytes = bytes
    }

    /// Reads a number.
    package mutating func number() throws(ReelError) -> Int64 {
        var number: UInt64 = 0
        for shift in stride(from: 0, to: 56, by: 7) {
            let byte = try byte()
            number |= UInt64(byte & 0x7F) << UInt64(shift)
            if byte < 0x80 { return Int64(number) - 1 }
        }
        throw damaged("a number")
    }

    /// Reads a count.
    package mutating func count() throws(ReelError) -> Int {
        let count = try number()
        guard count >= 0, count <= bytes.count else { throw damaged("a count") }
        return Int(count)
    }

    /// Reads a flag.
    package mutating func flag() throws(ReelError) -> Bool {
        switch try byte() {
        case 0: return false
        case 1: return true
        default: throw damaged("a flag")
        }
    }

    /// Reads bytes after their count.
    package mutating func data() throws(ReelError) -> Bytes {
        try take(try count())
    }

    /// Reads canonical JSON.
    mutating func value() throws(ReelError) -> Bytes {
        let value = try data()
        try CanonicalJSON.check(value, levels: Limits.seedDepth)
        return value
    }

    /// Reads a text or name, and returns it without its quotes.
    mutating func text() throws(ReelError) -> Bytes {
        let value = try value()
        guard value.first == ASCII.quote else { throw damaged("a text") }
        return Bytes(rebasing: value[1..<value.count - 1])
    }

    mutating func mark() throws(ReelError) -> TextMark {
        let seq = try number()
        if try flag() {
            let halves = try take(16)
            lastSite = Site(
                high: UInt64(bigEndian: halves.loadUnaligned(as: UInt64.self)),
                low: UInt64(bigEndian: halves.loadUnaligned(fromByteOffset: 8, as: UInt64.self))
            )
        }
        guard let lastSite else { throw damaged("a site") }
        return TextMark(seq: seq, site: lastSite)
    }

    /// Throws unless everything was read.
    package func end() throws(ReelError) {
        guard position == bytes.count else { throw damaged("its end") }
    }

    private mutating func byte() throws(ReelError) -> UInt8 {
        try take(1)[0]
    }

    private mutating func take(_ count: Int) throws(ReelError) -> Bytes {
        guard count <= bytes.count - position else { throw damaged("\(count) more bytes") }
        defer { position += count }
        return Bytes(rebasing: bytes[position..<position + count])
    }

    /// Returns the error for bytes that `RowWriter` cannot have written.
    package func damaged(_ expected: String) -> ReelError {
        ReelError(.internal, "found a stored row of \(bytes.count) bytes without \(expected) at byte \(position)")
    }
}
