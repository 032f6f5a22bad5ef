public import ReelClient

/// The place of an object in a list that users can reorder: a fractional index.
///
/// To move an object, write one new rank, and no other object changes. Each rank ends with six random digits. Two
/// devices that put objects into the same place at the same time therefore make two ranks, and all devices show the
/// same order.
///
/// The text of a rank has an integer part and a fraction, in digits `0`…`9`, `A`…`Z`, `a`…`z`. The first letter is the
/// number of digits of the integer part, as in David Greenspan's “Implementing fractional indexing”. So a list that
/// grows at an end has short ranks.
public struct Rank: Hashable, Sendable {
    /// The maximum length of a rank that is stored, in digits.
    static let digitsMax = 1_024
    /// The number of random digits at the end of a rank.
    private static let randomDigits = 6

    /// A rank in the middle, the same on all devices: the default of a property. It has no random digits, so give
    /// each object that is inserted a rank of `between`.
    public static let middle = Rank(integer: middleInteger[...], fraction: [])

    /// The digits as ASCII.
    private let bytes: [UInt8]

    /// Creates the rank of a stored text. Nil for any other text.
    public init?(_ text: String) {
        let bytes = Array(text.utf8)
        guard bytes.count <= Self.digitsMax, let integer = Self.integerLength(bytes), bytes.count >= integer,
            bytes.allSatisfy({ Self.digit(of: $0) != nil }), bytes.count == integer || bytes.last != Self.zero,
            bytes[..<integer] != Self.smallestInteger[...] || bytes.count > integer
        else { return nil }
        self.bytes = bytes
    }

    private init(integer: ArraySlice<UInt8>, fraction: [UInt8]) {
        bytes = integer + fraction.map { Self.digits[Int($0)] }
    }

    /// The text that is stored. The order of ranks is the order of the bytes of their texts.
    public var text: String { String(decoding: bytes, as: UTF8.self) }

    /// Returns a rank between two others. Without `lower` it is the first of a list, without `upper` the last.
    ///
    /// If `lower` is not below `upper`, which can be so after concurrent moves, the rank is directly above `lower`.
    public static func between(_ lower: Rank?, _ upper: Rank?) -> Rank {
        var random = SystemRandomNumberGenerator()
        return between(lower, upper, using: &random)
    }

    /// Returns a rank between two others, with random digits of a generator.
    ///
    /// - Parameters:
    ///   - lower: the rank before the place; nil: the place is the first of the list.
    ///   - upper: the rank after the place; nil: the place is the last of the list.
    ///   - random: the generator of the random digits.
    public static func between(
        _ lower: Rank?,
        _ upper: Rank?,
        using random: inout some RandomNumberGenerator
    ) -> Rank {
        switch (lower, upper) {
        case (nil, nil): return Rank(integer: middleInteger[...], fraction: randomFraction(&random))
        case (nil, let upper?):
            if let integer = neighbor(of: upper.integer, isAbove: false) {
                return Rank(integer: integer[...], fraction: randomFraction(&random))
            }
            return Rank(integer: upper.integer, fraction: fraction(between: [], upper.fraction, &random))
        case (let lower?, nil):
            if let integer = neighbor(of: lower.integer, isAbove: true) {
                return Rank(integer: integer[...], fraction: randomFraction(&random))
            }
            return Rank(integer: lower.integer, fraction: fraction(between: lower.fraction, nil, &random))
        case (let lower?, let upper?):
            guard lower < upper else {
                return Rank(integer: lower.integer, fraction: lower.fraction + randomFraction(&random))
            }
            if lower.integer == upper.integer {
                let fraction = fraction(between: lower.fraction, upper.fraction, &random)
                return Rank(integer: lower.integer, fraction: fraction)
            }
            if let integer = neighbor(of: lower.integer, isAbove: true), integer[...] != upper.integer {
                return Rank(integer: integer[...], fraction: randomFraction(&random))
            }
            return Rank(integer: lower.integer, fraction: fraction(between: lower.fraction, nil, &random))
        }
    }
}

extension Rank: Comparable {
    /// Returns true if `a` comes before `b` in a list.
    public static func < (a: Rank, b: Rank) -> Bool { a.bytes.lexicographicallyPrecedes(b.bytes) }
}

extension Rank: CustomStringConvertible {
    /// The text that is stored.
    public var description: String { text }
}

extension Rank: FieldValue {
    /// Creates the rank of a stored text.
    public init?(json: JSONValue) throws(FieldValueError) {
        guard let rank = json.string.flatMap({ Rank($0) }) else {
            throw FieldValueError(found: json.excerpt, expected: "a rank of at most \(Self.digitsMax) digits")
        }
        self = rank
    }

    /// Returns the text.
    ///
    /// - Throws: `FieldValueError` for a rank of more than 1,024 digits. It arises after thousands of insertions
    ///   between the same two objects: give all objects of such a list new ranks.
    public func json() throws(FieldValueError) -> JSONValue {
        guard bytes.count <= Self.digitsMax else {
            throw FieldValueError(
                found: "a rank of \(bytes.count) digits",
                expected: "at most \(Self.digitsMax): give the objects of the list new ranks"
            )
        }
        return .string(text)
    }
}

// MARK: Digits

extension Rank {
    private static let digits = Array("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz".utf8)
    private static let zero = UInt8(ascii: "0")
    private static let middleInteger = Array("a0".utf8)
    /// The smallest integer part. A rank of it has a fraction, so that there is always a rank below.
    private static let smallestInteger = [UInt8(ascii: "A")] + Array(repeating: zero, count: 26)

    private static func digit(of byte: UInt8) -> UInt8? {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): byte - UInt8(ascii: "0")
        case UInt8(ascii: "A")...UInt8(ascii: "Z"): byte - UInt8(ascii: "A") + 10
        case UInt8(ascii: "a")...UInt8(ascii: "z"): byte - UInt8(ascii: "a") + 36
        default: nil
        }
    }

    /// Returns the number of bytes of the integer part, with its first letter. `a` to `z` begin integers of 1 to 26
    /// digits from 0 on, `Z` to `A` negative ones.
    private static func integerLength(_ bytes: [UInt8]) -> Int? {
        switch bytes.first {
        case let letter? where (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(letter):
            Int(letter - UInt8(ascii: "a")) + 2
        case let letter? where (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(letter):
            Int(UInt8(ascii: "Z") - letter) + 2
        default: nil
        }
    }

    private var integer: ArraySlice<UInt8> { bytes[..<(Self.integerLength(bytes) ?? bytes.count)] }

    private var fraction: [UInt8] { bytes[integer.endIndex...].compactMap(Self.digit) }

    /// Returns the integer part directly above or below another one; nil at the last one.
    private static func neighbor(of integer: ArraySlice<UInt8>, isAbove: Bool) -> [UInt8]? {
        var result = Array(integer)
        let (last, first) = isAbove ? (digits[61], digits[0]) : (digits[0], digits[61])
        for index in result.indices.dropFirst().reversed() {
            if result[index] != last, let digit = digit(of: result[index]) {
                result[index] = digits[Int(isAbove ? digit + 1 : digit - 1)]
                return result
            }
            result[index] = first
        }
        return lengthened(result, isAbove: isAbove)
    }

    /// Returns the first integer part of the next length, after all digits of `integer` have overflowed.
    private static func lengthened(_ integer: [UInt8], isAbove: Bool) -> [UInt8]? {
        switch (integer[0], isAbove) {
        case (UInt8(ascii: "z"), true), (UInt8(ascii: "A"), false): return nil
        case (UInt8(ascii: "Z"), true): return Array("a0".utf8)
        case (UInt8(ascii: "a"), false): return Array("Zz".utf8)
        default: break
        }
        var result = integer
        result[0] = isAbove ? integer[0] + 1 : integer[0] - 1
        let length = integerLength(result) ?? result.count
        let filler = isAbove ? digits[0] : digits[61]
        return [result[0]] + Array(repeating: filler, count: length - 1)
    }

    /// Returns six random digits, of which the last is not 0.
    private static func randomFraction(_ random: inout some RandomNumberGenerator) -> [UInt8] {
        (1...randomDigits).map { UInt8.random(in: ($0 == randomDigits ? 1 : 0)...61, using: &random) }
    }

    /// Returns a fraction between two others, with random digits at its end; without `upper` there is no upper bound.
    private static func fraction(
        between lower: [UInt8],
        _ upper: [UInt8]?,
        _ random: inout some RandomNumberGenerator
    ) -> [UInt8] {
        var result: [UInt8] = []
        var upper = upper
        while true {
            let index = result.count
            let low = index < lower.count ? lower[index] : 0
            let high = upper.map { index < $0.count ? $0[index] : 62 } ?? 62
            if high > low + 1 { return result + [low + (high - low) / 2] + randomFraction(&random) }
            // Below the digit of `upper`, all further digits are free.
            if high > low { upper = nil }
            result.append(low)
        }
    }
}
