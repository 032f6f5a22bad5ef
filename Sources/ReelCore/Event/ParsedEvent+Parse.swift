#if canImport(Darwin)
internal import Darwin
#elseif canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#endif

extension ParsedEvent {
    /// Creates empty tables that `parse` fills.
    public init() {
        site = .nobody
        op = 0
        base = .none
        at = -1
        by = nil
        last = false
        parts = []
        isBatch = false
        fields = []
        operations = []
        elements = []
        triples = []
        guards = []
    }

    /// Parses the event `value` of the log. It must have exactly the canonical form, all required members, and no
    /// others.
    /// - Throws: `bad_event` or `too_large`; then the content of the tables is undefined.
    public mutating func parse(_ value: Bytes) throws(ReelError) {
        guard value.count <= Limits.value else {
            throw ReelError(.tooLarge, "found an event of \(value.count) bytes, expected at most \(Limits.value)")
        }
        parts.clear()
        fields.clear()
        operations.clear()
        elements.clear()
        triples.clear()
        guards.clear()
        at = -1
        by = nil
        last = false
        isBatch = false
        var reader = CanonicalReader(value, code: .badEvent)
        try event(&reader)
        try reader.end()
    }

    /// The type of an event or part.
    private enum Kind {
        case insert, update, delete, batch, noop
    }

    /// The members that both an event and a part may have; nil if absent.
    private struct Draft {
        var fields: Range<Int>?
        var id: Slice?
        var guards: Range<Int>?
        var model: Slice?
        var ops: Range<Int>?
        var type: Kind?
    }

    private mutating func event(_ reader: inout CanonicalReader) throws(ReelError) {
        var (site, op, base): (Site?, Op?, Seq?) = (nil, nil, nil)
        var draft = Draft()
        let levels = Limits.depth - 1
        reader.open()
        if reader.member(#""at":"#) { at = try reader.integer() }
        if reader.member(#""base":"#) { base = try reader.integer(from: -1) }
        if reader.member(#""by":"#) { by = try reader.name("by") }
        if reader.member(#""events":"#) { try batch(&reader) }
        if reader.member(#""fields":"#) { draft.fields = try fields(levels: levels, &reader) }
        if reader.member(#""id":"#) { draft.id = try reader.name("an id") }
        if reader.member(#""if":"#) { draft.guards = try guards(&reader) }
        if reader.member(#""last":"#) {
            try reader.literal("true")
            last = true
        }
        if reader.member(#""model":"#) { draft.model = try reader.name("a model") }
        if reader.member(#""op":"#) { op = try reader.integer() }
        if reader.member(#""ops":"#) { draft.ops = try operations(levels: levels, &reader) }
        if reader.member(#""site":"#) { site = try reader.site() }
        if reader.member(#""type":"#) { draft.type = try type(&reader) }
        try reader.close()
        guard let type = draft.type else { throw reader.missing("type") }
        guard let site else { throw reader.missing("site") }
        guard site != .nobody else { throw reader.error("found the nil UUID as the site") }
        guard let op else { throw reader.missing("op") }
        guard let base else { throw reader.missing("base") }
        (self.site, self.op, self.base) = (site, op, base)
        switch type {
        case .batch, .noop:
            guard draft.model == nil, draft.id == nil, draft.fields == nil, draft.ops == nil, draft.guards == nil else {
                throw reader.error("found a batch or noop with model, id, fields, ops or if")
            }
            guard isBatch == (type == .batch) else {
                throw reader.error(isBatch ? "found a noop with events" : "found a batch without events")
            }
        case .insert, .update, .delete:
            guard !isBatch else { throw reader.error("found events in an event that is no batch") }
            try finish(draft, &reader)
        }
    }

    private mutating func batch(_ reader: inout CanonicalReader) throws(ReelError) {
        isBatch = true
        try reader.expect(ASCII.openBracket)
        var isFirst = true
        while try reader.nextElement(&isFirst) {
            try finish(try part(&reader), &reader)
            guard parts.count <= Limits.parts else {
                throw reader.error("found a batch of more than \(Limits.parts) parts")
            }
        }
        guard !parts.isEmpty else { throw reader.error("found a batch of no parts, expected 1 to \(Limits.parts)") }
    }

    private mutating func part(_ reader: inout CanonicalReader) throws(ReelError) -> Draft {
        var draft = Draft()
        let levels = Limits.depth - 3
        reader.open()
        if reader.member(#""fields":"#) { draft.fields = try fields(levels: levels, &reader) }
        if reader.member(#""id":"#) { draft.id = try reader.name("an id") }
        if reader.member(#""if":"#) { draft.guards = try guards(&reader) }
        if reader.member(#""model":"#) { draft.model = try reader.name("a model") }
        if reader.member(#""ops":"#) { draft.ops = try operations(levels: levels, &reader) }
        if reader.member(#""type":"#) { draft.type = try type(&reader) }
        try reader.close()
        return draft
    }

    private func type(_ reader: inout CanonicalReader) throws(ReelError) -> Kind {
        let text = try reader.text()
        switch reader.bytes(text) {
        case "insert": return .insert
        case "update": return .update
        case "delete": return .delete
        case "batch": return .batch
        case "noop": return .noop
        default:
            let found = JSONText(reader.bytes(text)).string.debugDescription
            throw reader.error("found \(found), expected insert, update, delete, batch or noop")
        }
    }

    /// Checks that a change has exactly the members that its kind permits, and appends it.
    private mutating func finish(_ draft: Draft, _ reader: inout CanonicalReader) throws(ReelError) {
        guard let type = draft.type else { throw reader.missing("type") }
        guard let model = draft.model else { throw reader.missing("model") }
        guard let id = draft.id else { throw reader.missing("id") }
        let kind: PartKind
        switch type {
        case .insert: kind = .insert
        case .update: kind = .update
        case .delete: kind = .delete
        case .batch, .noop: throw reader.error("found a batch or noop as a part of a batch")
        }
        if kind != .update, draft.ops != nil { throw reader.error("found ops outside of an update") }
        if kind == .delete, draft.fields != nil { throw reader.error("found fields in a delete") }
        let part = Part(
            kind: kind,
            model: model,
            id: id,
            fields: draft.fields ?? 0..<0,
            ops: draft.ops ?? 0..<0,
            guards: draft.guards ?? 0..<0
        )
        try checkApart(part, &reader)
        parts.append(part)
    }

    /// Throws if a name is in both fields and ops of a part. Both are sorted.
    private func checkApart(_ part: Part, _ reader: inout CanonicalReader) throws(ReelError) {
        var (field, operation) = (part.fields.lowerBound, part.ops.lowerBound)
        while field < part.fields.upperBound, operation < part.ops.upperBound {
            let order = reader.memberOrder(fields[field].name, operations[operation].name)
            if order == 0 { throw reader.error("found a name in both fields and ops") }
            if order < 0 { field += 1 } else { operation += 1 }
        }
    }

    // MARK: Fields, guards, operations

    private mutating func fields(levels: Int, _ reader: inout CanonicalReader) throws(ReelError) -> Range<Int> {
        let first = fields.count
        var lastKey = Slice(start: 0, count: 0)
        try reader.expect(ASCII.openBrace)
        while let name = try reader.nextKey(&lastKey) {
            try reader.checkName(name, "a field's name")
            let start = reader.position
            let byte = reader.byte
            try reader.value(levels: levels - 1)
            fields.append(
                Field(
                    name: name,
                    value: Slice(start: start, count: reader.position - start),
                    removes: byte == UInt8(ascii: "n"),
                    isText: byte == ASCII.quote
                )
            )
        }
        return first..<fields.count
    }

    private mutating func guards(_ reader: inout CanonicalReader) throws(ReelError) -> Range<Int> {
        let first = guards.count
        var lastKey = Slice(start: 0, count: 0)
        try reader.expect(ASCII.openBrace)
        while let name = try reader.nextKey(&lastKey) {
            try reader.checkName(name, "a field's name")
            guards.append(Guard(name: name, seq: try reader.integer(from: -1)))
        }
        return first..<guards.count
    }

    private mutating func operations(levels: Int, _ reader: inout CanonicalReader) throws(ReelError) -> Range<Int> {
        let first = operations.count
        var lastKey = Slice(start: 0, count: 0)
        try reader.expect(ASCII.openBrace)
        while let name = try reader.nextKey(&lastKey) {
            try reader.checkName(name, "a field's name")
            try reader.expect(ASCII.openBrace)
            var innerKey = Slice(start: 0, count: 0)
            guard let key = try reader.nextKey(&innerKey) else {
                throw reader.error("found an empty operation, expected inc, add, remove or splice")
            }
            let kind: Operation.Kind
            switch reader.bytes(key) {
            case "inc":
                let literal = try reader.number()
                guard let step = CanonicalNumber.value(of: reader.bytes(literal)) else {
                    throw reader.error("found an inc that is no finite number")
                }
                kind = .increment(step)
            case "splice":
                kind = .splice(try triples(&reader))
            case "add":
                let added = try elements(levels: levels - 2, &reader)
                var removed = 0..<0
                if reader.byte == ASCII.comma {
                    guard let second = try reader.nextKey(&innerKey) else { throw reader.missing("remove") }
                    guard "remove" ~= reader.bytes(second) else { throw reader.unknown(second) }
                    removed = try elements(levels: levels - 2, &reader)
                }
                kind = .change(add: added, remove: removed)
            case "remove":
                kind = .change(add: 0..<0, remove: try elements(levels: levels - 2, &reader))
            default: throw reader.unknown(key)
            }
            if let another = try reader.nextKey(&innerKey) { throw reader.unknown(another) }
            operations.append(Operation(name: name, kind: kind))
        }
        return first..<operations.count
    }

    /// Reads the elements of an add or remove; returns them sorted by their bytes, without duplicates.
    private mutating func elements(levels: Int, _ reader: inout CanonicalReader) throws(ReelError) -> Range<Int> {
        let first = elements.count
        var (isFirst, isSorted) = (true, true)
        try reader.expect(ASCII.openBracket)
        while try reader.nextElement(&isFirst) {
            let start = reader.position
            try reader.value(levels: levels - 1)
            let element = Slice(start: start, count: reader.position - start)
            if elements.count > first, reader.bytes(elements[elements.count - 1]).order(reader.bytes(element)) >= 0 {
                isSorted = false
            }
            elements.append(element)
        }
        if !isSorted {
            let sorted = elements[first...].sorted { reader.bytes($0).order(reader.bytes($1)) < 0 }
            elements.removeSubrange(first...)
            for element in sorted {
                if elements.count > first, reader.bytes(elements[elements.count - 1]).equals(reader.bytes(element)) {
                    continue
                }
                elements.append(element)
            }
        }
        return first..<elements.count
    }

    private mutating func triples(_ reader: inout CanonicalReader) throws(ReelError) -> Range<Int> {
        let first = triples.count
        var isFirst = true
        try reader.expect(ASCII.openBracket)
        while try reader.nextElement(&isFirst) {
            try reader.expect(ASCII.openBracket)
            let offset = try reader.integer()
            try reader.expect(ASCII.comma)
            let removed = try reader.integer()
            try reader.expect(ASCII.comma)
            let text = try reader.text()
            try reader.expect(ASCII.closeBracket)
            let scalars = Int64(JSONText(reader.bytes(text)).scalarCount)
            triples.append(Triple(offset: offset, removed: removed, text: text, scalars: scalars))
        }
        guard triples.count > first else { throw reader.error("found a splice without [offset, removed, text]") }
        return first..<triples.count
    }
}

extension CanonicalReader {
    /// Reads a name: 1 to 128 bytes of UTF-8 without U+0000 to U+001F.
    @inline(__always)
    mutating func name(_ what: StaticString) throws(ReelError) -> Slice {
        let text = try text()
        try checkName(text, what)
        return text
    }

    /// Throws unless the text that was read last is a valid name.
    @inline(__always)
    func checkName(_ name: Slice, _ what: StaticString) throws(ReelError) {
        // A control character always has an escape, so a plain text has none.
        if name.count > 0, name.count <= Limits.name, isPlain { return }
        try checkUnusualName(name, what)
    }

    private func checkUnusualName(_ name: Slice, _ what: StaticString) throws(ReelError) {
        let text = JSONText(bytes(name))
        var count = 0
        var hasControl = false
        for byte in IteratorSequence(text.decoded) {
            count += 1
            if byte < 0x20 { hasControl = true }
        }
        guard (1...Limits.name).contains(count), !hasControl else {
            throw error(
                "found \(what) of \(count) bytes\(hasControl ? " with a control character" : ""), "
                    + "expected 1 to \(Limits.name) bytes of UTF-8 without U+0000 to U+001F"
            )
        }
    }

    /// Reads the UUID of a site.
    @inline(__always)
    mutating func site() throws(ReelError) -> Site {
        let text = try text()
        guard let site = Site(bytes: bytes(text)) else {
            throw error("found a site that is no UUID in lower case")
        }
        return site
    }

    @inline(never)
    func unknown(_ key: Slice) -> ReelError {
        error("found the member \(JSONText(bytes(key)).string.debugDescription), which has no place there")
    }

    @inline(never)
    func missing(_ name: StaticString) -> ReelError {
        error("found no member \"\(name)\"")
    }
}

extension Array {
    /// Removes all elements, and keeps the memory. Usually the array is empty already.
    @inline(__always)
    fileprivate mutating func clear() {
        if !isEmpty { removeAll(keepingCapacity: true) }
    }
}
