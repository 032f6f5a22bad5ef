#if canImport(Darwin)
internal import Darwin
#elseif canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#endif

extension JSON {
    /// The canonical form (RFC 8785): no white space, members sorted by the UTF-16 code units of their names, the
    /// shortest escapes, numbers as ECMAScript prints them.
    var canonical: [UInt8] {
        var bytes: [UInt8] = []
        print(into: &bytes)
        return bytes
    }

    private func print(into bytes: inout [UInt8]) {
        switch self {
        case .null: bytes += "null".utf8
        case .bool(let bool): bytes += (bool ? "true" : "false").utf8
        case .number(let number): bytes += ecmaScript(number).utf8
        case .text(let text): text.print(into: &bytes)
        case .array(let values):
            bytes.append(UInt8(ascii: "["))
            for (index, value) in values.enumerated() {
                if index > 0 { bytes.append(UInt8(ascii: ",")) }
                value.print(into: &bytes)
            }
            bytes.append(UInt8(ascii: "]"))
        case .object(let members):
            bytes.append(UInt8(ascii: "{"))
            for (index, member) in Self.sorted(members).enumerated() {
                if index > 0 { bytes.append(UInt8(ascii: ",")) }
                member.name.print(into: &bytes)
                bytes.append(UInt8(ascii: ":"))
                member.value.print(into: &bytes)
            }
            bytes.append(UInt8(ascii: "}"))
        }
    }
}

extension JSON {
    /// Sorts members by the UTF-16 code units of their names. For ASCII these are the bytes, and usually the members
    /// are sorted already.
    private static func sorted(_ members: [Member]) -> [Member] {
        let isSorted = zip(members, members.dropFirst()).allSatisfy { $0.name < $1.name }
        if isSorted, members.allSatisfy({ $0.name.bytes.allSatisfy { $0 < 0x80 } }) { return members }
        return members.map { (units: Array($0.name.string.utf16), member: $0) }
            .sorted { $0.units.lexicographicallyPrecedes($1.units) }
            .map(\.member)
    }
}

extension Text {
    fileprivate func print(into printed: inout [UInt8]) {
        printed.append(UInt8(ascii: "\""))
        if bytes.allSatisfy({ $0 >= 0x20 && $0 != UInt8(ascii: "\"") && $0 != UInt8(ascii: "\\") }) {
            printed += bytes
            printed.append(UInt8(ascii: "\""))
            return
        }
        for byte in bytes {
            if let escape = escape(of: byte) { printed += escape.utf8 } else { printed.append(byte) }
        }
        printed.append(UInt8(ascii: "\""))
    }
}

/// Returns the escape of a byte inside a text; nil if the byte needs none.
func escape(of byte: UInt8) -> String? {
    switch byte {
    case 0x08: "\\b"
    case 0x09: "\\t"
    case 0x0A: "\\n"
    case 0x0C: "\\f"
    case 0x0D: "\\r"
    case UInt8(ascii: "\""): "\\\""
    case UInt8(ascii: "\\"): "\\\\"
    case ..<0x20: "\\u" + hex(UInt64(byte), digits: 4)
    default: nil
    }
}

/// Returns a number in the form of ECMAScript's `Number::toString`. An infinite number becomes a text that is not JSON.
func ecmaScript(_ number: Double) -> String {
    if number < 0 { return "-" + ecmaScript(-number) }
    guard number.isFinite else { return "Infinity" }
    if number.rounded() == number, number <= Double(largestInteger) { return String(Int64(number)) }

    // The number is 0.DIGITS × 10^point.
    let (digits, point) = shortestDigits(number)
    let count = digits.count
    if count <= point, point <= 21 { return digits + String(repeating: "0", count: point - count) }
    if 0 < point, point <= 21 { return digits.prefix(point) + "." + digits.dropFirst(point) }
    if -6 < point, point <= 0 { return "0." + String(repeating: "0", count: -point) + digits }
    let mantissa = count == 1 ? digits : digits.prefix(1) + "." + digits.dropFirst()
    return mantissa + (point > 0 ? "e+" : "e-") + String(abs(point - 1))
}

/// Returns the fewest decimal digits that read back as this positive number, and the nearest of those with equal
/// length.
private func shortestDigits(_ number: Double) -> (digits: String, point: Int) {
    for count in 1...17 {
        // The nearest decimal with `count` digits: significand × 10^exponent.
        let parts = formatted(number, fraction: count - 1).split(separator: "e")
        guard let significand = UInt64(parts[0].filter { $0 != "." }), let power = Int(parts[1]) else { break }
        let exponent = power - (count - 1)
        // Above a power of two, doubles are further apart than below it. There the nearest decimal may read back as a
        // neighbour of the number, and the next decimal on the other side as the number itself.
        for candidate in [significand, significand + 1, significand - 1]
        where strtod("\(candidate)e\(exponent)", nil) == number {
            let all = String(candidate)
            let digits = String(all.reversed().drop { $0 == "0" }.reversed())
            return (digits, all.count + exponent)
        }
    }
    return (String(number), 0)  // Never reached: 17 digits name every double.
}

/// Formats a number with C's `%.*e`.
private func formatted(_ number: Double, fraction: Int) -> String {
    withUnsafeTemporaryAllocation(of: CChar.self, capacity: 40) { buffer in
        _ = withVaList([Int32(fraction), number]) { vsnprintf(buffer.baseAddress!, buffer.count, "%.*e", $0) }
        return String(cString: buffer.baseAddress!)
    }
}
