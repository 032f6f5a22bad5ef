/// Writes one JSON object, member by member.
package struct JSONObjectWriter {
    private var bytes: [UInt8] = [ASCII.openBrace]

    /// An object without members.
    package init() {}

    /// The name of a member; its value must be appended to the bytes by `value`.
    package mutating func member(_ name: StaticString, _ value: (inout [UInt8]) -> Void) {
        if bytes.count > 1 { bytes.append(ASCII.comma) }
        bytes.append(ASCII.quote)
        bytes.append(name)
        bytes.append(#"":"#)
        value(&bytes)
    }

    /// A member with a text; none for nil.
    package mutating func member(_ name: StaticString, _ text: String?) {
        if let text { member(name) { $0.append(quoted: text) } }
    }

    /// A member with an integer; none for nil.
    package mutating func member(_ name: StaticString, _ integer: (some BinaryInteger)?) {
        if let integer { member(name) { $0.append(integer: integer) } }
    }

    /// A member with JSON as it stands; none for nil.
    package mutating func member(_ name: StaticString, raw: [UInt8]?) {
        if let raw { member(name) { $0.append(contentsOf: raw) } }
    }

    /// A member with an array, each element appended by `element`.
    package mutating func member<Element>(
        _ name: StaticString,
        _ elements: some Sequence<Element>,
        _ element: (inout [UInt8], Element) -> Void
    ) {
        member(name) { bytes in
            bytes.append(ASCII.openBracket)
            for (index, value) in elements.enumerated() {
                if index > 0 { bytes.append(ASCII.comma) }
                element(&bytes, value)
            }
            bytes.append(ASCII.closeBracket)
        }
    }

    /// The bytes of the object.
    package consuming func finish() -> [UInt8] {
        bytes.append(ASCII.closeBrace)
        return bytes
    }
}
