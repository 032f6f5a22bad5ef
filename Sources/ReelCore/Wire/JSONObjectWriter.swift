/// Writes one JSON object, member by member.
package struct JSONObjectWriter {
    private var bytes: [UInt8] = []
    private var isEmpty = true

    /// An object without members.
    package init() {
        bytes.append(ASCII.openBrace)
    }

    /// An object without members, written behind these bytes, which are away until `finish(into:)` brings them back. A
    /// swap, since a `consume` of an inout array copies it.
    fileprivate init(taking output: inout [UInt8]) {
        swap(&bytes, &output)
        bytes.append(ASCII.openBrace)
    }

    fileprivate mutating func finish(into output: inout [UInt8]) {
        bytes.append(ASCII.closeBrace)
        swap(&bytes, &output)
    }

    /// The name of a member; its value must be appended to the bytes by `value`.
    package mutating func member(_ name: StaticString, _ value: (inout [UInt8]) -> Void) {
        separate()
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

    /// A member with a truth value.
    package mutating func member(_ name: StaticString, _ truth: Bool) {
        member(name) { $0.append(truth ? "true" : "false") }
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
        member(name) { $0.append(array: elements, element) }
    }

    /// A member with an object, whose members are written by `members`.
    package mutating func object(_ name: StaticString, _ members: (inout JSONObjectWriter) -> Void) {
        member(name) { $0.append(ASCII.openBrace) }
        isEmpty = true
        members(&self)
        bytes.append(ASCII.closeBrace)
        isEmpty = false
    }

    /// A member with an array of objects, one for each element, whose members are written by `members`.
    package mutating func objects<Element>(
        _ name: StaticString,
        _ elements: some Sequence<Element>,
        _ members: (inout JSONObjectWriter, Element) -> Void
    ) {
        member(name, elements) { bytes, element in bytes.appendObject { members(&$0, element) } }
    }

    /// A member whose name is not known beforehand; its value must be appended to the bytes by `value`.
    package mutating func member(named name: String, _ value: (inout [UInt8]) -> Void) {
        separate()
        bytes.append(quoted: name)
        bytes.append(ASCII.colon)
        value(&bytes)
    }

    /// The bytes of the object.
    package consuming func finish() -> [UInt8] {
        bytes.append(ASCII.closeBrace)
        return bytes
    }

    /// The bytes of the object and a line feed.
    package consuming func finishLine() -> [UInt8] {
        bytes.append("}\n")
        return bytes
    }

    private mutating func separate() {
        if !isEmpty { bytes.append(ASCII.comma) }
        isEmpty = false
    }
}

extension [UInt8] {
    /// Appends an object, whose members are written by `members`.
    package mutating func appendObject(_ members: (inout JSONObjectWriter) -> Void) {
        var writer = JSONObjectWriter(taking: &self)
        members(&writer)
        writer.finish(into: &self)
    }

    /// Appends an array, each element appended by `element`.
    package mutating func append<Value>(
        array elements: some Sequence<Value>,
        _ element: (inout [UInt8], Value) -> Void
    ) {
        append(ASCII.openBracket)
        var isFirst = true
        for value in elements {
            if !isFirst { append(ASCII.comma) }
            isFirst = false
            element(&self, value)
        }
        append(ASCII.closeBracket)
    }

    /// Appends an array of two integers, or three.
    package mutating func append(integers first: Int64, _ second: Int64, _ third: Int64? = nil) {
        append(ASCII.openBracket)
        append(integer: first)
        append(ASCII.comma)
        append(integer: second)
        if let third {
            append(ASCII.comma)
            append(integer: third)
        }
        append(ASCII.closeBracket)
    }
}
