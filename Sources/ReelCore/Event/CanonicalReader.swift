#if canImport(Darwin)
internal import Darwin
#elseif canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#endif

/// Reads only canonical JSON, from left to right. The first byte that differs from the canonical form is an error. Does
/// not allocate.
struct CanonicalReader {
    let base: UnsafePointer<UInt8>
    let count: Int
    var position = 0
    /// The byte that must precede the next member that `member` reads: the brace of its object, or a comma.
    private var lead = ASCII.openBrace
    /// True if the text that was read last contains no escape.
    private(set) var isPlain = true
    /// The code of all errors that the reader throws.
    let code: ErrorCode

    /// Creates a reader of these bytes. It ends after 2^31 − 1 bytes, the maximum that a slice can address.
    init(_ bytes: Bytes, code: ErrorCode) {
        // An empty buffer may have no address. The reader reads none of its bytes.
        base = (bytes.baseAddress ?? UnsafeRawPointer(bitPattern: 1)!).assumingMemoryBound(to: UInt8.self)
        count = min(bytes.count, Int(Int32.max))
        self.code = code
    }

    /// The next byte; 0 at the end, because no JSON text contains it.
    @inline(__always)
    var byte: UInt8 { position < count ? base[position] : 0 }

    @inline(__always)
    func bytes(_ slice: Slice) -> Bytes {
        Bytes(start: base + Int(slice.start), count: Int(slice.count))
    }

    // MARK: Structure

    @inline(__always)
    mutating func expect(_ expected: UInt8) throws(ReelError) {
        guard byte == expected else { throw unexpected("'\(Character(Unicode.Scalar(expected)))'") }
        position += 1
    }

    /// Throws an error if a byte follows.
    func end() throws(ReelError) {
        guard position == count else { throw unexpected("the end") }
    }

    /// Advances to the value of the next member and returns its key; nil after the last member.
    /// - Parameter last: the previous key. Before the first member it is the empty slice at 0; no key starts at 0,
    ///   because an opening brace precedes it.
    @inline(__always)
    mutating func nextKey(_ last: inout Slice) throws(ReelError) -> Slice? {
        if byte == ASCII.closeBrace {
            position += 1
            return nil
        }
        let isFirst = last.start == 0
        if !isFirst { try expect(ASCII.comma) }
        let key = try text()
        if !isFirst, memberOrder(last, key) >= 0 { throw unordered(last, key) }
        try expect(ASCII.colon)
        last = key
        return key
    }

    /// Advances to the next element of an array. Returns false after the last one.
    @inline(__always)
    mutating func nextElement(_ isFirst: inout Bool) throws(ReelError) -> Bool {
        if byte == ASCII.closeBracket {
            position += 1
            return false
        }
        if isFirst {
            isFirst = false
        } else {
            try expect(ASCII.comma)
        }
        return true
    }

    /// Returns the order of two keys by UTF-16 code units.
    @inline(__always)
    func memberOrder(_ a: Slice, _ b: Slice) -> Int {
        let (left, right) = (base + Int(a.start), base + Int(b.start))
        let shared = Int(min(a.count, b.count))
        var index = 0
        while index < shared, left[index] == right[index] { index += 1 }
        if index == shared { return Int(a.count) - Int(b.count) }
        let (x, y) = (left[index], right[index])
        if x < 0x80, y < 0x80, x != ASCII.backslash, y != ASCII.backslash, !bytes(a).contains(ASCII.backslash) {
            return Int(x) - Int(y)
        }
        return JSONText(bytes(a)).memberOrder(JSONText(bytes(b)))
    }

    // MARK: Objects with known members

    /// Begins an object. The caller asks for its members one by one, in the order of their keys. A member that is out
    /// of order or doubled is therefore found where the object should end.
    @inline(__always)
    mutating func open() {
        lead = ASCII.openBrace
    }

    /// Advances to the value of a member if it is the next one; otherwise returns false.
    /// - Parameter key: the key with its quotes and the colon.
    @inline(__always)
    mutating func member(_ key: StaticString) -> Bool {
        guard byte == lead, holds(key, at: position + 1) else { return false }
        position += 1 + key.utf8CodeUnitCount
        lead = ASCII.comma
        return true
    }

    /// Ends the object.
    @inline(__always)
    mutating func close() throws(ReelError) {
        if lead == ASCII.openBrace { try expect(ASCII.openBrace) }
        guard byte == ASCII.closeBrace else { throw misplaced() }
        position += 1
        lead = ASCII.comma
    }

    /// Returns the reason why the object does not end here.
    @inline(never)
    private mutating func misplaced() -> ReelError {
        do throws(ReelError) {
            if lead == ASCII.comma { try expect(ASCII.comma) }
            return unknown(try text())
        } catch {
            return error
        }
    }

    // MARK: Values

    /// Reads a value that contains at most `levels` levels of objects and arrays.
    mutating func value(levels: Int) throws(ReelError) {
        switch byte {
        case ASCII.quote: _ = try text()
        case ASCII.openBrace:
            guard levels > 0 else { throw tooDeep() }
            position += 1
            var last = Slice(start: 0, count: 0)
            while try nextKey(&last) != nil { try value(levels: levels - 1) }
        case ASCII.openBracket:
            guard levels > 0 else { throw tooDeep() }
            position += 1
            var isFirst = true
            while try nextElement(&isFirst) { try value(levels: levels - 1) }
        case UInt8(ascii: "t"): try literal("true")
        case UInt8(ascii: "f"): try literal("false")
        case UInt8(ascii: "n"): try literal("null")
        default: _ = try number()
        }
    }

    @inline(__always)
    mutating func literal(_ word: StaticString) throws(ReelError) {
        guard holds(word, at: position) else { throw unexpected("a value") }
        position += word.utf8CodeUnitCount
    }

    /// True if the bytes at `place` are those of `word`.
    @inline(__always)
    private func holds(_ word: StaticString, at place: Int) -> Bool {
        place + word.utf8CodeUnitCount <= count && memcmp(base + place, word.utf8Start, word.utf8CodeUnitCount) == 0
    }

    /// Reads a string and returns the slice between its quotes.
    mutating func text() throws(ReelError) -> Slice {
        guard byte == ASCII.quote else { throw unexpected("a string") }
        isPlain = true
        let start = position + 1
        var next = start
        while true {
            while next + 8 <= count {
                let word = UInt64(littleEndian: UnsafeRawPointer(base + next).loadUnaligned(as: UInt64.self))
                let special = JSONText.special(word)
                if special == 0 {
                    next += 8
                } else {
                    next += special.trailingZeroBitCount >> 3
                    break
                }
            }
            let byte = next < count ? base[next] : 0
            if byte == ASCII.quote {
                position = next + 1
                return Slice(start: start, count: next - start)
            }
            if byte >= 0x20, byte < 0x80, byte != ASCII.backslash {
                next += 1
            } else {
                position = next
                try unusual()
                next = position
            }
        }
    }

    /// Reads an escape, or a scalar beyond ASCII.
    private mutating func unusual() throws(ReelError) {
        let byte = byte
        if byte == ASCII.backslash {
            isPlain = false
            position += 1
            switch self.byte {
            case ASCII.quote, ASCII.backslash, UInt8(ascii: "b"), UInt8(ascii: "t"), UInt8(ascii: "n"),
                UInt8(ascii: "f"), UInt8(ascii: "r"):
                position += 1
            case UInt8(ascii: "u"):
                // Only control characters without a shorter escape have this form.
                guard position + 5 <= count, base[position + 1] == ASCII.zero, base[position + 2] == ASCII.zero,
                    let high = ASCII.lowerHex(base[position + 3]), let low = ASCII.lowerHex(base[position + 4]),
                    high < 2, ![0x08, 0x09, 0x0a, 0x0c, 0x0d].contains(high << 4 | low)
                else { throw unexpected("the shortest escape") }
                position += 5
            default: throw unexpected("the shortest escape")
            }
        } else if byte >= 0x80 {
            let length = JSONText.scalarLength(base + position, count - position)
            guard length > 0 else { throw unexpected("valid UTF-8") }
            position += length
        } else {
            throw unexpected("the end of a string")
        }
    }

    // MARK: Numbers

    /// Reads a number and returns its literal.
    mutating func number() throws(ReelError) -> Slice {
        let start = position
        if byte == ASCII.minus { position += 1 }
        let whole = digits()
        guard whole > 0 else { throw unexpected("a value") }
        if whole > 1, base[position - whole] == ASCII.zero { throw unexpected("a number without leading zeros") }
        var isCommon = whole <= 15 && !(base[position - whole] == ASCII.zero && base[start] == ASCII.minus)
        if byte == ASCII.point {
            let leadingZero = base[position - 1] == ASCII.zero && whole == 1
            position += 1
            let fraction = digits()
            guard fraction > 0 else { throw unexpected("a digit") }
            // Different decimals of at most 15 digits have different doubles, so each is the shortest text of its own
            // double. A number below 0.000001 has an exponent in the canonical form.
            isCommon = whole + fraction <= 15 && base[position - 1] != ASCII.zero
            if leadingZero, fraction > 5, memcmp(base + position - fraction, "000000", 6) == 0 { isCommon = false }
        }
        if byte == UInt8(ascii: "e") {
            position += 1
            if byte == ASCII.minus || byte == UInt8(ascii: "+") { position += 1 }
            guard digits() > 0 else { throw unexpected("a digit") }
            isCommon = false
        }
        let literal = Slice(start: start, count: position - start)
        if !isCommon, !CanonicalNumber.isCanonical(bytes(literal)) {
            position = start
            throw unexpected("a number as ECMAScript prints it")
        }
        return literal
    }

    /// Reads digits and returns their number.
    @inline(__always)
    private mutating func digits() -> Int {
        let start = position
        while position < count, base[position] &- ASCII.zero < 10 { position += 1 }
        return position - start
    }

    /// Reads an integer between `lowest` and 2^53 − 1.
    @inline(__always)
    mutating func integer(from lowest: Int64 = 0) throws(ReelError) -> Int64 {
        let start = position
        let isNegative = byte == ASCII.minus
        let first = isNegative ? start + 1 : start
        // 2^53 − 1 has 16 digits, so one more digit is enough to find a number that is too large.
        let limit = min(count, first + 17)
        var next = first
        var value: Int64 = 0
        while next < limit {
            let digit = base[next] &- ASCII.zero
            guard digit < 10 else { break }
            value = value &* 10 &+ Int64(digit)
            next += 1
        }
        let length = next - first
        if isNegative { value = -value }
        position = next
        guard length > 0, base[first] != ASCII.zero || length == 1 && !isNegative, value >= lowest,
            value <= largestInteger, !isNumberByte(byte)
        else {
            position = start
            throw unexpected("an integer from \(lowest) to 2^53 − 1")
        }
        return value
    }

    private func isNumberByte(_ byte: UInt8) -> Bool {
        ASCII.digit(byte) != nil || byte == ASCII.point || byte == UInt8(ascii: "e") || byte == UInt8(ascii: "E")
    }

    // MARK: Errors

    @inline(never)
    func unexpected(_ expected: String) -> ReelError {
        let found =
            switch byte {
            case 0 where position >= count: "the end"
            case 0x21...0x7e: "'\(Character(Unicode.Scalar(byte)))'"
            case let byte: "byte \(byte)"
            }
        return error("found \(found) where \(expected) was expected")
    }

    @inline(never)
    func error(_ message: String) -> ReelError {
        let place = place
        return ReelError(code, place.isEmpty ? message : "\(message), in \(place)")
    }

    @inline(never)
    private func tooDeep() -> ReelError {
        error("found more levels of objects and arrays than are allowed (\(Limits.depth) in an event)")
    }

    @inline(never)
    private func unordered(_ last: Slice, _ key: Slice) -> ReelError {
        let (last, key) = (JSONText(bytes(last)).string, JSONText(bytes(key)).string)
        if last == key { return error("found the member \(key.debugDescription) twice") }
        return error("found the member \(key.debugDescription) after \(last.debugDescription), expected sorted keys")
    }
}
