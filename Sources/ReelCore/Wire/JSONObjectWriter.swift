/// Writes one JSON object, member by member.
package struct JSONObjectWriter {
    private var bytes: [UInt8] = []
    private var isEmpty = true

    /// Creates an object without members.
    package init() {
        bytes.append(ASCII.openBrace)
    }

    /// Creates an object that is written after the bytes of `output`. `output` is empty until `finish(into:)` returns
    /// the bytes. The bytes are swapped, because `consume` of an inout array copies it.
    fileprivate init(taking output: inout [UInt8]) {
        swap(&bytes, &output)
        bytes.append(ASCII.openBrace)
    }

    fileprivate mutating func finish(into output: inout [UInt8]) {
        bytes.append(ASCII.closeBrace)
        swap(&bytes, &output)
    }

    /// Writes a member. `value` must append its value to the bytes.
    package mutating func member(_ name: StaticString, _ value: (inout [UInt8]) -> Void) {
        separate()
        bytes.append(ASCII.quote)
        bytes.append(name)
        bytes.append(#"":"#)
        value(&bytes)
    }

    /// Writes a member with a text; writes nothing for nil.
    package mutating func member(_ name: StaticString, _ text: String?) {
        if let text { member(name) { $0.append(quoted: text) } }
    }

    /// Writes a member with an integer; writes nothing for nil.
    package mutating func member(_ name: StaticString, _ integer: (some BinaryInteger)?) {
        if let integer { member(name) { $0.append(integer: integer) } }
    }

    /// Writes a member with a Boolean value.
    package mutating func member(_ name: StaticString, _ truth: Bool) {
        member(name) { $0.append(truth ? "true" : "false") }
    }

    /// Writes a member with JSON that is already encoded; writes nothing for nil.
    package mutating func member(_ name: StaticString, raw: [UInt8]?) {
        if let raw { member(name) { $0.append(contentsOf: raw) } }
    }

    /// Writes a member with an array.
    ///
    /// - Parameters:
    ///   - name: the name of the member, which needs no escapes.
    ///   - elements: the elements of the array.
    ///   - element: appends the JSON of one element to the bytes.
    package mutating func member<Element>(
        _ name: StaticString,
        _ elements: some Sequence<Element>,
        _ element: (inout [UInt8], Element) -> Void
    ) {
        member(name) { $0.append(array: elements, element) }
    }

    /// Writes a member with an object; `members` writes its members.
    package mutating func object(_ name: StaticString, _ members: (inout JSONObjectWriter) -> Void) {
        member(name) { $0.append(ASCII.openBrace) }
        isEmpty = true
        members(&self)
        bytes.append(ASCII.closeBrace)
        isEmpty = false
    }

    /// Writes a member with an array of objects.
    ///
    /// - Parameters:
    ///   - name: the name of the member, which needs no escapes.
    ///   - elements: the elements of the array.
    ///   - members: writes the members of the object of one element.
    package mutating func objects<Element>(
        _ name: StaticString,
        _ elements: some Sequence<Element>,
        _ members: (inout JSONObjectWriter, Element) -> Void
    ) {
        member(name, elements) { bytes, element in bytes.appendObject { members(&$0, element) } }
    }

    /// Writes a member with a name that is known only at run time. `value` must append its value to the bytes.
    package mutating func member(named name: String, _ value: (inout [UInt8]) -> Void) {
        separate()
        bytes.append(quoted: name)
        bytes.append(ASCII.colon)
        value(&bytes)
    }

    /// Returns the bytes of the object.
    package consuming func finish() -> [UInt8] {
        bytes.append(ASCII.closeBrace)
        return bytes
    }

    /// Returns the bytes of the object and a line feed.
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
    /// Appends an object; `members` writes its members.
    package mutating func appendObject(_ members: (inout JSONObjectWriter) -> Void) {
        var writer = JSONObjectWriter(taking: &self)
        members(&writer)
        writer.finish(into: &self)
    }

    /// Appends an array; `element` appends each element.
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

    /// Appends an array of two or three integers.
    ///
    /// - Parameters:
    ///   - first: the first element.
    ///   - second: the second element.
    ///   - third: the third element; nil: the array has two elements.
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
