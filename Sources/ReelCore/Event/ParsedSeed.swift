/// A parsed seed: one line of the state that a new epoch begins with, as slices into the record's value.
public struct ParsedSeed: Sendable {
    /// The subject of the line.
    public enum Line: Sendable {
        /// A site: its op, the slice of its author's name if it has one, and true if it has ended.
        case site(Site, op: Op, by: Slice?, ended: Bool)
        /// An object with its `fields`.
        case object(model: Slice, id: Slice)
        /// A tombstone.
        case deleted(model: Slice, id: Slice)
        /// The fact that sites of the stream were retired in an earlier epoch.
        case retired
    }

    /// A field of an object.
    public struct Field: Sendable {
        /// The field's name, a text.
        public var name: Slice
        /// The value as canonical JSON, never `null`.
        public var value: Slice
        /// The field's last writer.
        public var site: Site
    }

    /// The line.
    public let line: Line
    /// The fields of an object, sorted by name; empty for other lines.
    public let fields: [Field]

    /// Parses the value of a seed.
    /// - Throws: `bad_event` or `too_large` for any value that is not exactly a seed.
    public init(_ value: Bytes) throws(ReelError) {
        guard value.count <= Limits.value else {
            throw ReelError(.tooLarge, "found a seed of \(value.count) bytes, expected at most \(Limits.value)")
        }
        var reader = CanonicalReader(value, code: .badEvent)
        var lastKey = Slice(start: 0, count: 0)
        try reader.expect(ASCII.openBrace)
        guard let key = try reader.nextKey(&lastKey), "line" ~= reader.bytes(key) else { throw reader.missing("line") }
        var fields: [Field] = []
        line = try ParsedSeed.line(&reader, &fields)
        self.fields = fields
        guard let type = try reader.nextKey(&lastKey), "type" ~= reader.bytes(type),
            "seed" ~= reader.bytes(try reader.text()), try reader.nextKey(&lastKey) == nil
        else { throw reader.error("found no seed") }
        try reader.end()
    }

    private static func line(_ reader: inout CanonicalReader, _ fields: inout [Field]) throws(ReelError) -> Line {
        var lastKey = Slice(start: 0, count: 0)
        try reader.expect(ASCII.openBrace)
        guard let key = try reader.nextKey(&lastKey) else { throw reader.error("found an empty line") }
        let line: Line
        switch reader.bytes(key) {
        case "deleted":
            let (model, id) = try reader.object()
            line = .deleted(model: model, id: id)
        case "fields":
            fields = try readFields(&reader)
            try reader.key("object", &lastKey)
            let (model, id) = try reader.object()
            line = .object(model: model, id: id)
        case "by":
            let by = try reader.name("by")
            try reader.key("end", &lastKey)
            line = try site(by: by, &reader, &lastKey)
        case "end":
            line = try site(by: nil, &reader, &lastKey)
        case "retired":
            try reader.literal("true")
            line = .retired
        default: throw reader.unknown(key)
        }
        if let another = try reader.nextKey(&lastKey) { throw reader.unknown(another) }
        return line
    }

    /// Reads the rest of a site's line, beginning with the value of `end`.
    private static func site(
        by: Slice?,
        _ reader: inout CanonicalReader,
        _ lastKey: inout Slice
    ) throws(ReelError) -> Line {
        let end = try reader.integer(from: -1)
        try reader.key("op", &lastKey)
        let op = try reader.integer()
        try reader.key("site", &lastKey)
        return .site(try reader.site(), op: op, by: by, ended: end >= 0)
    }

    private static func readFields(_ reader: inout CanonicalReader) throws(ReelError) -> [Field] {
        var fields: [Field] = []
        // The braces, and for each field two quotes and a colon, and the commas between the fields.
        var size = 1
        var lastKey = Slice(start: 0, count: 0)
        try reader.expect(ASCII.openBrace)
        while let name = try reader.nextKey(&lastKey) {
            try reader.checkName(name, "a field's name")
            try reader.expect(ASCII.openBracket)
            guard reader.byte != UInt8(ascii: "n") else { throw reader.error("found a field without a value") }
            let start = reader.position
            try reader.value(levels: Limits.seedDepth - 4)
            let value = Slice(start: start, count: reader.position - start)
            try reader.expect(ASCII.comma)
            let site = try reader.site()
            try reader.expect(ASCII.closeBracket)
            fields.append(Field(name: name, value: value, site: site))
            size += Int(name.count) + Int(value.count) + 4
        }
        guard fields.count <= Limits.fields, size <= Limits.object else {
            throw ReelError(
                .tooLarge,
                "found an object of \(fields.count) fields and \(size) bytes, expected at most \(Limits.fields) "
                    + "and \(Limits.object)"
            )
        }
        return fields
    }
}

extension CanonicalReader {
    /// Advances to the value of the member `name`, which must be the next one.
    fileprivate mutating func key(_ name: StaticString, _ last: inout Slice) throws(ReelError) {
        guard let key = try nextKey(&last) else { throw missing(name) }
        guard name ~= bytes(key) else { throw unknown(key) }
    }

    /// Reads `["model","id"]`.
    fileprivate mutating func object() throws(ReelError) -> (model: Slice, id: Slice) {
        try expect(ASCII.openBracket)
        let model = try name("a model")
        try expect(ASCII.comma)
        let id = try name("an id")
        try expect(ASCII.closeBracket)
        return (model, id)
    }
}
