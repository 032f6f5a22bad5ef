import Reel
import ReelClient

/// A value that a property shows, or that a field holds, in a form that no code of the SDK has decoded.
enum Plain: Hashable, Sendable {
    /// The absent field, and nil.
    case absent
    case bool(Bool)
    case number(Double)
    case text([UInt8])
    case list([Plain])
    /// The elements of a set, of which Swift takes two spellings of one text for one.
    case set(Set<String>)

    init(_ text: String) { self = .text(Array(text.utf8)) }

    init(_ json: JSONValue) {
        self =
            switch json {
            case .null, .object: .absent
            case .bool(let bool): .bool(bool)
            case .number(let number): .number(number)
            case .integer(let integer): .number(Double(integer))
            case .string(let text): Plain(text)
            case .array(let elements): .list(elements.map { Plain($0) })
            }
    }

    /// The text of an element of a set.
    var string: String? {
        if case .text(let bytes) = self { String(decoding: bytes, as: UTF8.self) } else { nil }
    }

    var elements: [Plain]? {
        if case .list(let elements) = self { elements } else { nil }
    }
}

/// A type of properties whose values can be compared with stored ones.
protocol Shown: FieldValue {
    var plain: Plain { get }

    /// Returns what a property of the type shows for a stored value. Nil for a value that this build does not know, for
    /// which the property shows its default.
    static func shown(for stored: Plain) -> Plain?
}

extension Shown {
    static func shown(for stored: Plain) -> Plain? { stored }
}

extension Bool: Shown {
    var plain: Plain { .bool(self) }
}

extension Int: Shown {
    var plain: Plain { .number(Double(self)) }
}

extension Double: Shown {
    var plain: Plain { .number(self) }
}

extension String: Shown {
    var plain: Plain { Plain(self) }
}

extension Timestamp: Shown {
    var plain: Plain { .number(Double(ms)) }
}

extension Rank: Shown {
    var plain: Plain { Plain(text) }
}

extension Ref: Shown {
    var plain: Plain { Plain(id.text) }
}

extension Shown where Self: CaseIterable & RawRepresentable, RawValue == String {
    var plain: Plain { Plain(rawValue) }

    static func shown(for stored: Plain) -> Plain? { allCases.map(\.plain).first { $0 == stored } }
}

extension Optional: Shown where Wrapped: Shown {
    var plain: Plain { self?.plain ?? .absent }

    static func shown(for stored: Plain) -> Plain? { Wrapped.shown(for: stored) }
}

extension Array: Shown where Element: Shown {
    var plain: Plain { .list(map(\.plain)) }

    static func shown(for stored: Plain) -> Plain? {
        let elements = stored.elements?.map { Element.shown(for: $0) } ?? [nil]
        return elements.contains(nil) ? nil : .list(elements.compactMap(\.self))
    }
}

extension Set where Element: Shown {
    var plain: Plain { .set(Set<String>(compactMap(\.plain.string))) }

    /// Returns the elements of a stored array that this build knows.
    static func shown(for stored: Plain) -> Plain {
        .set(Set<String>((stored.elements ?? []).compactMap { Element.shown(for: $0)?.string }))
    }
}
