/// Numbers in the text form that ECMAScript prints for a double. It is the only form of a number in canonical JSON.
package enum CanonicalNumber {
    /// The maximum length of a number's text in bytes, for example `-1.2345678901234567e-308`.
    static let longest = 25

    /// True if the literal is the text that ECMAScript prints for its double.
    static func isCanonical(_ literal: Bytes) -> Bool {
        guard literal.count <= longest, let value = value(of: literal) else { return false }
        return withText(of: value) { literal.equals($0) }
    }

    /// Returns the double nearest to a JSON number; nil if it is not finite.
    static func value(of literal: Bytes) -> Double? {
        guard let value = Double(String(decoding: literal, as: UTF8.self)), value.isFinite else { return nil }
        return value
    }

    /// Calls `body` with the text of a finite number.
    package static func withText<R>(of value: Double, _ body: (Bytes) -> R) -> R {
        withUnsafeTemporaryAllocation(byteCount: longest, alignment: 1) { buffer in
            body(Bytes(rebasing: buffer[..<write(value, to: buffer)]))
        }
    }

    /// Writes the text of a finite number, and returns its length.
    ///
    /// Swift's `description` has the shortest digits that identify the double, and the nearest of those. It differs
    /// from ECMAScript's form only in the arrangement of the digits.
    private static func write(_ value: Double, to buffer: UnsafeMutableRawBufferPointer) -> Int {
        var length = 0
        func put(_ byte: UInt8) {
            buffer[length] = byte
            length += 1
        }
        if value < 0 { put(ASCII.minus) }
        var (digits, count, point) = shortest(value.magnitude)
        if digits == 0 {
            put(ASCII.zero)
            return length
        }
        withUnsafeTemporaryAllocation(byteCount: 20, alignment: 1) { text in
            for index in stride(from: count - 1, through: 0, by: -1) {
                text[index] = ASCII.zero + UInt8(digits % 10)
                digits /= 10
            }
            switch point {
            case count...21 where count <= 21:
                text[..<count].forEach(put)
                for _ in count..<point { put(ASCII.zero) }
            case 1..<count where point <= 21:
                text[..<point].forEach(put)
                put(ASCII.point)
                text[point..<count].forEach(put)
            case -5...0:
                put(ASCII.zero)
                put(ASCII.point)
                for _ in point..<0 { put(ASCII.zero) }
                text[..<count].forEach(put)
            default:
                put(text[0])
                if count > 1 {
                    put(ASCII.point)
                    text[1..<count].forEach(put)
                }
                put(UInt8(ascii: "e"))
                put(point > 0 ? UInt8(ascii: "+") : ASCII.minus)
                let exponent = abs(point - 1)
                if exponent >= 100 { put(ASCII.zero + UInt8(exponent / 100)) }
                if exponent >= 10 { put(ASCII.zero + UInt8(exponent / 10 % 10)) }
                put(ASCII.zero + UInt8(exponent % 10))
            }
        }
        return length
    }

    /// Returns the shortest digits of a number, without zeros at either end, and the exponent: 0.DIGITS × 10^point.
    private static func shortest(_ value: Double) -> (digits: UInt64, count: Int, point: Int) {
        var (digits, count, point) = (UInt64(0), 0, 0)
        var (exponent, inExponent, exponentSign, seenPoint) = (0, false, 1, false)
        for byte in value.description.utf8 {
            guard let digit = ASCII.digit(byte) else {
                switch byte {
                case ASCII.point: seenPoint = true
                case ASCII.minus: exponentSign = -1
                case UInt8(ascii: "e"): inExponent = true
                default: break
                }
                continue
            }
            if inExponent {
                exponent = exponent * 10 + Int(digit)
                continue
            }
            if digit == 0, count == 0 {
                if seenPoint { point -= 1 }
                continue
            }
            if !seenPoint { point += 1 }
            digits = digits * 10 + UInt64(digit)
            count += 1
        }
        while digits > 0, digits % 10 == 0 {
            digits /= 10
            count -= 1
        }
        return (digits, count, point + exponentSign * exponent)
    }
}
