internal import ReelClient

/// The content that a storage must have.
struct Model: Sendable, Equatable {
    /// A key and its value.
    struct Pair: Sendable, Equatable {
        var key: [UInt8]
        var value: [UInt8]
    }

    /// A key that comes after all keys of the checks.
    static let end = [UInt8](repeating: 0xFF, count: 40)

    private var values: [[UInt8]: [UInt8]] = [:]

    /// All pairs in order.
    var pairs: [Pair] {
        values.map { Pair(key: $0, value: $1) }.sorted { $0.key.lexicographicallyPrecedes($1.key) }
    }

    /// Returns those of the pairs that are in a range.
    static func pairs(of pairs: [Pair], from start: [UInt8], to end: [UInt8]) -> [Pair] {
        pairs.filter { !$0.key.lexicographicallyPrecedes(start) && $0.key.lexicographicallyPrecedes(end) }
    }

    /// Applies the changes in order.
    mutating func apply(_ changes: StorageChanges) {
        for change in changes.changes {
            switch change {
            case .put(let key, let value): values[key] = value
            case .remove(let key): values[key] = nil
            case .removeRange(let start, let end):
                for pair in Self.pairs(of: pairs, from: start, to: end) { values[pair.key] = nil }
            }
        }
    }

    /// Throws the first difference between two lists of pairs.
    static func compare(_ found: [Pair], _ expected: [Pair], _ moment: String) throws {
        for (found, expected) in zip(found, expected) where found != expected {
            throw Wrong("\(moment): found the pair \(text(found)), expected \(text(expected))")
        }
        if found.count > expected.count {
            throw Wrong("\(moment): found the pair \(text(found[expected.count])) after the last expected one")
        }
        if found.count < expected.count {
            throw Wrong("\(moment): found no pair \(text(expected[found.count]))")
        }
    }

    private static func text(_ pair: Pair) -> String {
        "\(ReelStorageConformance.text(pair.key)): \(ReelStorageConformance.text(pair.value))"
    }
}

/// Returns bytes as text for a message: hexadecimal, shortened.
func text(_ bytes: [UInt8]) -> String {
    let digits = bytes.prefix(16).map { byte in
        let digits = String(byte, radix: 16)
        return digits.count == 1 ? "0" + digits : digits
    }
    return "<\(digits.joined(separator: " "))\(bytes.count > 16 ? " … \(bytes.count) bytes" : "")>"
}

/// Returns the bytes of a number, the highest first, so that keys have the order of their numbers.
func bytes(_ number: Int) -> [UInt8] {
    withUnsafeBytes(of: UInt64(truncatingIfNeeded: number).bigEndian) { Array($0) }
}

/// Returns the number of such bytes; nil if they are none.
func number(_ bytes: [UInt8]?) -> Int? {
    guard let bytes, bytes.count == 8 else { return nil }
    return bytes.reduce(0) { $0 << 8 | Int($1) }
}
