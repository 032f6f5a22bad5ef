/// Reads any JSON from left to right: frames, bodies of requests, and events before they are canonical. Strict as RFC
/// 8259 and I-JSON (RFC 7493): valid UTF-8, no lone surrogates, no duplicate keys, a limit of the depth.
///
/// Invalid JSON is an error of code `bad_json`. Valid JSON with another shape than requested has the code `shape`.
public struct JSONReader {
    let bytes: Bytes
    let shape: ErrorCode
    /// The offset of the next byte to read.
    public private(set) var position = 0
    /// The number of levels of objects and arrays that may still be opened.
    private var levels: Int
    /// The keys of the open objects, for the check of duplicates if they are not sorted.
    private var keys: [Slice] = []

    /// Creates a reader. It ends after 2^31 − 1 bytes, the maximum that a slice can address.
    ///
    /// - Parameters:
    ///   - bytes: the JSON text. It must stay valid while the reader is in use.
    ///   - levels: the maximum number of levels of objects and arrays.
    ///   - shape: the code of the error for valid JSON of another shape than requested.
    public init(_ bytes: Bytes, levels: Int, shape: ErrorCode) {
        self.bytes = Bytes(start: bytes.baseAddress, count: min(bytes.count, Int(Int32.max)))
        self.levels = levels
        self.shape = shape
    }

    /// The kind of a value.
    public enum Kind: String, Sendable {
        /// The six kinds of JSON.
        case object, array, string, number, boolean, null
    }

    // MARK: Structure

    /// Returns the kind of the next value. Reads only white space.
    public mutating func kind() throws(ReelError) -> Kind {
        skipSpace()
        switch byte {
        case ASCII.openBrace: return .object
        case ASCII.openBracket: return .array
        case ASCII.quote: return .string
        case UInt8(ascii: "t"), UInt8(ascii: "f"): return .boolean
        case UInt8(ascii: "n"): return .null
        case ASCII.minus, ASCII.zero...ASCII.nine: return .number
        default: throw unexpected("a value")
        }
    }

    /// Reads an object. Calls `member` for each member; it must read the value.
    public mutating func object(
        _ member: (inout JSONReader, JSONText) throws(ReelError) -> Void
    ) throws(ReelError) {
        try open(.object)
        let firstKey = keys.count
        var isSorted = true
        skipSpace()
        if byte == ASCII.closeBrace {
            position += 1
        } else {
            while true {
                skipSpace()
                let key = try textSlice()
                // After two keys are out of order, no further keys are compared, because with escapes this is slow.
                if isSorted, keys.count > firstKey {
                    isSorted = JSONText(bytes[keys[keys.count - 1]]).order(JSONText(bytes[key])) < 0
                }
                keys.append(key)
                skipSpace()
                guard byte == ASCII.colon else { throw unexpected("':'") }
                position += 1
                try member(&self, JSONText(bytes[key]))
                skipSpace()
                guard byte == ASCII.comma else { break }
                position += 1
            }
            guard byte == ASCII.closeBrace else { throw unexpected("',' or '}'") }
            position += 1
        }
        if !isSorted { try checkUnique(keys[firstKey...]) }
        keys.removeSubrange(firstKey...)
        levels += 1
    }

    /// Reads an array. Calls `element` for each element; it must read the element.
    public mutating func array(_ element: (inout JSONReader) throws(ReelError) -> Void) throws(ReelError) {
        try open(.array)
        skipSpace()
        if byte == ASCII.closeBracket {
            position += 1
        } else {
            while true {
                try element(&self)
                skipSpace()
                guard byte == ASCII.comma else { break }
                position += 1
            }
            guard byte == ASCII.closeBracket else { throw unexpected("',' or ']'") }
            position += 1
        }
        levels += 1
    }

    private mutating func open(_ kind: Kind) throws(ReelError) {
        try expect(kind)
        guard levels > 0 else {
            throw ReelError(.badJSON, "found more levels of objects and arrays than are allowed, at byte \(position)")
        }
        levels -= 1
        position += 1
    }

    /// Throws `bad_json` if two keys are equal after their escapes are decoded.
    ///
    /// The keys are in a hash table with open addressing that is at most half full, so this takes linear time. The hash
    /// has a random seed in each process, so that an attacker cannot choose keys that collide.
    private func checkUnique(_ keys: ArraySlice<Slice>) throws(ReelError) {
        let size = 1 << (Int.bitWidth - (2 * keys.count).leadingZeroBitCount)
        var slots = [(hash: Int, key: Slice)?](repeating: nil, count: size)
        var decoded: [UInt8] = []
        for key in keys {
            let hash = JSONText(bytes[key]).hash(&decoded)
            var slot = hash & (size - 1)
            while let other = slots[slot] {
                if other.hash == hash, JSONText(bytes[other.key]).order(JSONText(bytes[key])) == 0 {
                    throw ReelError(
                        .badJSON,
                        "found the member \(JSONText(bytes[key]).string.debugDescription) twice, "
                            + "at bytes \(other.key.start) and \(key.start)"
                    )
                }
                slot = (slot + 1) & (size - 1)
            }
            slots[slot] = (hash, key)
        }
    }

    /// Throws an error unless only white space follows.
    public mutating func end() throws(ReelError) {
        skipSpace()
        guard position == bytes.count else { throw unexpected("the end") }
    }

    // MARK: Values

    /// Reads a string.
    public mutating func text() throws(ReelError) -> JSONText {
        try expect(.string)
        return JSONText(bytes[try textSlice()])
    }

    /// Reads a string and decodes it.
    public mutating func string() throws(ReelError) -> String {
        try text().string
    }

    /// Reads a number and returns its literal.
    public mutating func number() throws(ReelError) -> Bytes {
        try expect(.number)
        let start = position
        if byte == ASCII.minus { position += 1 }
        let whole = digits()
        guard whole > 0 else { throw unexpected("a digit") }
        guard whole == 1 || bytes[position - whole] != ASCII.zero else {
            throw ReelError(.badJSON, "found a number with leading zeros, at byte \(start)")
        }
        if byte == ASCII.point {
            position += 1
            guard digits() > 0 else { throw unexpected("a digit") }
        }
        if byte | 0x20 == UInt8(ascii: "e") {
            position += 1
            if byte == ASCII.minus || byte == UInt8(ascii: "+") { position += 1 }
            guard digits() > 0 else { throw unexpected("a digit") }
        }
        return Bytes(rebasing: bytes[start..<position])
    }

    /// Reads an integer between `lowest` and `highest`, written without fraction and exponent.
    public mutating func integer(
        from lowest: Int64 = 0,
        to highest: Int64 = largestInteger
    ) throws(ReelError) -> Int64 {
        let start = position
        let literal = try number()
        guard literal.count <= 17, let value = Int64(String(decoding: literal, as: UTF8.self)),
            lowest <= value, value <= highest
        else {
            throw ReelError(
                shape,
                "found \(String(decoding: literal.prefix(40), as: UTF8.self)) at byte \(start), "
                    + "expected an integer from \(lowest) to \(highest)"
            )
        }
        return value
    }

    /// Reads `true` or `false`.
    public mutating func boolean() throws(ReelError) -> Bool {
        try expect(.boolean)
        let value = byte == UInt8(ascii: "t")
        try word(value ? "true" : "false")
        return value
    }

    /// Reads any value and returns its bytes unchanged.
    public mutating func raw() throws(ReelError) -> Bytes {
        skipSpace()
        let start = position
        try skip()
        return Bytes(rebasing: bytes[start..<position])
    }

    /// Skips any value, and validates it.
    public mutating func skip() throws(ReelError) {
        switch try kind() {
        case .object: try object { (reader, _) throws(ReelError) in try reader.skip() }
        case .array: try array { (reader) throws(ReelError) in try reader.skip() }
        case .string: _ = try textSlice()
        case .number: _ = try number()
        case .boolean: _ = try boolean()
        case .null: try null()
        }
    }

    /// Reads `null`.
    public mutating func null() throws(ReelError) {
        try expect(.null)
        try word("null")
    }

    // MARK: Bytes

    private var byte: UInt8 { position < bytes.count ? bytes[position] : 0 }

    private mutating func skipSpace() {
        while position < bytes.count {
            switch bytes[position] {
            case 0x20, 0x0a, 0x0d, 0x09: position += 1
            default: return
            }
        }
    }

    private mutating func digits() -> Int {
        let start = position
        while ASCII.digit(byte) != nil { position += 1 }
        return position - start
    }

    private mutating func word(_ word: StaticString) throws(ReelError) {
        let end = position + word.utf8CodeUnitCount
        guard end <= bytes.count, word ~= Bytes(rebasing: bytes[position..<end]) else { throw unexpected("a value") }
        position = end
    }

    private mutating func textSlice() throws(ReelError) -> Slice {
        guard byte == ASCII.quote, let base = bytes.baseAddress else { throw unexpected("a string") }
        let start = position + 1
        var next = start
        while true {
            while next + 8 <= bytes.count {
                let word = UInt64(littleEndian: (base + next).loadUnaligned(as: UInt64.self))
                let special = JSONText.special(word)
                next += special == 0 ? 8 : special.trailingZeroBitCount >> 3
                if special != 0 { break }
            }
            let byte = next < bytes.count ? bytes[next] : 0
            switch byte {
            case ASCII.quote:
                position = next + 1
                return Slice(start: start, count: next - start)
            case 0x20..<0x80 where byte != ASCII.backslash: next += 1
            default:
                position = next
                try unusual(base)
                next = position
            }
        }
    }

    /// Reads an escape, or a scalar beyond ASCII.
    private mutating func unusual(_ base: UnsafeRawPointer) throws(ReelError) {
        if byte == ASCII.backslash {
            try escape()
        } else {
            guard byte >= 0x80 else { throw unexpected("the end of a string") }
            let first = (base + position).assumingMemoryBound(to: UInt8.self)
            let length = JSONText.scalarLength(first, bytes.count - position)
            guard length > 0 else { throw unexpected("valid UTF-8") }
            position += length
        }
    }

    private mutating func escape() throws(ReelError) {
        position += 1
        guard byte == UInt8(ascii: "u") else {
            guard JSONText.escaped(byte) != nil else { throw unexpected("an escape of JSON") }
            position += 1
            return
        }
        let unit = try unicodeEscape()
        guard unit & 0xf800 == 0xd800 else { return }
        let start = position
        if unit & 0x0400 == 0, byte == ASCII.backslash {
            position += 1
            if byte == UInt8(ascii: "u"), try unicodeEscape() & 0xfc00 == 0xdc00 { return }
        }
        throw ReelError(.badJSON, "found a lone surrogate, expected valid Unicode, at byte \(start - 6)")
    }

    /// Reads `uXXXX`.
    private mutating func unicodeEscape() throws(ReelError) -> UInt32 {
        position += 1
        var value: UInt32 = 0
        for _ in 0..<4 {
            guard let digit = JSONText.hexDigit(byte) else { throw unexpected("four hex digits") }
            value = value << 4 | UInt32(digit)
            position += 1
        }
        return value
    }

    // MARK: Errors

    /// Returns an error with the code for wrong shapes.
    public func mismatch(_ message: String) -> ReelError {
        ReelError(shape, message)
    }

    private mutating func expect(_ expected: Kind) throws(ReelError) {
        let found = try kind()
        guard found == expected else { throw mistaken(found, expected) }
    }

    /// Returns the error for a value of another kind. Also detects an invalid word, because `kind` looks only at the
    /// first byte.
    private func mistaken(_ found: Kind, _ expected: Kind) -> ReelError {
        if found == .boolean || found == .null {
            let letters = bytes[position...].prefix { 0x61...0x7a ~= $0 | 0x20 }
            if !["true", "false", "null"].contains(where: { $0.utf8.elementsEqual(letters) }) {
                return unexpected("a value")
            }
        }
        return ReelError(shape, "found \(found.named) at byte \(position), expected \(expected.named)")
    }

    private func unexpected(_ expected: String) -> ReelError {
        let found =
            switch byte {
            case 0 where position >= bytes.count: "the end"
            case 0x21...0x7e: "'\(Character(Unicode.Scalar(byte)))'"
            default: "byte \(byte)"
            }
        return ReelError(.badJSON, "found \(found) at byte \(position), expected \(expected)")
    }
}

extension JSONReader.Kind {
    fileprivate var named: String {
        switch self {
        case .object, .array: "an \(rawValue)"
        case .string, .number, .boolean: "a \(rawValue)"
        case .null: rawValue
        }
    }
}
