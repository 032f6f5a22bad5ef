/// A JSON value as it was read: numbers are doubles, texts are decoded, members keep their order.
enum JSON: Sendable {
    case null
    case bool(Bool)
    case number(Double)
    case text(Text)
    case array([JSON])
    case object([Member])

    struct Member: Sendable {
        let name: Text
        let value: JSON

        init(_ name: Text, _ value: JSON) {
            self.name = name
            self.value = value
        }

        init(_ name: String, _ value: JSON) {
            self.init(Text(name), value)
        }
    }
}

/// The reason why a value is invalid, for people to read.
public struct Fault: Error, Equatable {
    /// The reason as one sentence.
    public let reason: String

    init(_ reason: String) {
        self.reason = reason
    }
}

/// The largest integer up to which a double represents every integer: 2^53 − 1.
let largestInteger: Int64 = 9_007_199_254_740_991

extension JSON {
    static func string(_ string: String) -> JSON { .text(Text(string)) }

    static func integer(_ integer: Int64) -> JSON { .number(Double(integer)) }

    /// The integer, if the value is a number without a fraction between −(2^53 − 1) and 2^53 − 1; otherwise nil.
    var integer: Int64? {
        guard case .number(let number) = self, number.rounded() == number,
            abs(number) <= Double(largestInteger)
        else { return nil }
        return Int64(number)
    }

    var text: Text? {
        if case .text(let text) = self { text } else { nil }
    }

    var array: [JSON]? {
        if case .array(let values) = self { values } else { nil }
    }

    var members: [Member]? {
        if case .object(let members) = self { members } else { nil }
    }

    var isNull: Bool {
        if case .null = self { true } else { false }
    }

    /// The number of levels of objects and arrays, including the value itself; 0 for any other value.
    var depth: Int {
        switch self {
        case .array(let values): 1 + (values.map(\.depth).max() ?? 0)
        case .object(let members): 1 + (members.map(\.value.depth).max() ?? 0)
        default: 0
        }
    }
}
