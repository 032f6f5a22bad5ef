extension StreamState {
    /// Applies the parts of an event in order. Stops at the first part that fails and returns the reason; the caller
    /// then undoes all parts.
    /// - Parameters:
    ///   - n: the seq of the event.
    ///   - site: the event's site as it was before the event.
    ///   - before: every object that the event names, as it was before the event.
    mutating func apply(_ event: Event, at n: Int64, site: SiteState, before: [ObjectName: Before]) -> Code? {
        if event.base >= n { return .badBase }
        let writer = Writer(
            author: Author(site: event.site, base: event.base),
            stamp: Stamp(seq: n, site: event.site),
            site: site,
            isBelowHorizon: event.base < horizon
        )
        for part in event.parts {
            let object = objects[part.object]
            let code = reject(part, of: object, before: before[part.object]?.object, writer)
            if let code { return code }
            switch part.kind {
            case .insert, .update:
                let changed = write(part, to: object ?? Object(seq: n), writer)
                if changed.isTooLarge { return .tooLarge }
                objects[part.object] = changed
            case .delete where object != nil:
                objects[part.object] = nil
                tombstones[part.object] = n
            case .delete:
                break  // Its tombstone stays as it is.
            }
        }
        let horizon = horizon
        for name in before.keys { objects[name]?.flatten(behind: writer.author, above: horizon) }
        return nil
    }

    /// Returns the first reason to reject the part. Each check covers all names of the part before the next check
    /// begins.
    private func reject(_ part: Part, of object: Object?, before: Object?, _ writer: Writer) -> Code? {
        let deleted = tombstones[part.object] != nil
        if part.kind == .insert, writer.isBelowHorizon { return .stale }
        if part.kind != .delete, deleted { return .deleted }
        if part.kind != .insert, object == nil, !deleted { return .noObject }

        let fields = object?.fields ?? [:]
        for expected in part.guards where before?.fields[expected.name]?.writer.seq ?? -1 != expected.seq {
            return .guard
        }
        for (name, operation) in part.operations {
            guard case .splice = operation else { continue }
            if !writer.maySplice(FieldName(part.object, name)) { return .stale }
            if let plain = fields[name]?.plainWriter, !writer.author.sees(plain) { return .stale }
        }
        for (name, operation) in part.operations {
            guard let content = fields[name]?.content else { continue }
            switch (operation, content) {
            case (.increment, .plain(.number)), (.change, .plain(.array)), (.splice, .plain(.text)), (.splice, .shared):
                break
            default:
                return .type
            }
        }
        for (name, operation) in part.operations {
            switch operation {
            case .increment(let number):
                if !(fields[name].number + number).isFinite { return .range }
            case .splice(let triples):
                var length = fields[name]?.sharedText?.length(to: writer.author) ?? 0
                for triple in triples {
                    if triple.offset > length || triple.removed > length - Int(triple.offset) { return .range }
                    length += triple.text.count - Int(triple.removed)
                }
            case .change:
                break
            }
        }
        return nil
    }

    /// Returns the object after the part's fields and operations.
    private func write(_ part: Part, to old: Object, _ writer: Writer) -> Object {
        var object = old
        object.seq = writer.stamp.seq
        for (name, value) in part.fields {
            object.fields[name] = value.isNull ? nil : Field(value, by: writer.stamp)
        }
        for (name, operation) in part.operations {
            let field = object.fields[name]
            switch operation {
            case .increment(let number):
                object.fields[name] = Field(.number(field.number + number), by: writer.stamp)
            case .change(let add, let remove):
                object.fields[name] = Field(changed(field?.value.array ?? [], add, remove), by: writer.stamp)
            case .splice(let triples):
                var text = field?.sharedText ?? SharedText()
                for triple in triples { text.splice(triple, by: writer.author, as: writer.stamp) }
                object.fields[name] = Field(text, by: writer.stamp, plainWriter: field?.plainWriter)
            }
        }
        return object
    }

    /// Removes values, then adds values. Returns them without duplicates, sorted by their canonical bytes.
    private func changed(_ old: [JSON], _ add: [JSON], _ remove: [JSON]) -> JSON {
        var values: [Text: JSON] = [:]
        for value in old { values[Text(value.canonical)] = value }
        for value in remove { values[Text(value.canonical)] = nil }
        for value in add { values[Text(value.canonical)] = value }
        return .array(values.sorted { $0.key < $1.key }.map(\.value))
    }
}

/// The values of an event that all of its parts need.
private struct Writer {
    let author: Author
    let stamp: Stamp
    /// The author's site as it was before the event.
    let site: SiteState
    let isBelowHorizon: Bool

    /// True if the author knows of every rejected text that its offsets in this field could count on.
    func maySplice(_ field: FieldName) -> Bool {
        !isBelowHorizon && author.base >= site.r && author.base >= site.lost[field] ?? -1
    }
}

extension Field? {
    /// The number of the field; absent counts as 0.
    fileprivate var number: Double {
        if case .plain(.number(let number)) = self?.content { number } else { 0 }
    }
}

extension Object {
    /// Drops the edit history of the object's texts if it weighs more than `Limit.objectHistory`. Every text with a
    /// weight then counts as written plainly at the seq of its last writer. The writer is the author's site if the
    /// author sees the current text, otherwise `Site.nobody`.
    fileprivate mutating func flatten(behind author: Author, above horizon: Int64) {
        let texts = fields.compactMapValues { field in
            if case .shared(let text) = field.content { text } else { nil }
        }
        let weights = texts.mapValues { $0.weight(above: horizon) }
        guard weights.values.reduce(0, +) > Limit.objectHistory else { return }
        for (name, field) in fields {
            guard let text = texts[name], weights[name] ?? 0 > 0 else { continue }
            let site = text.isWhole(to: author) ? author.site : .nobody
            let writer = Stamp(seq: field.writer.seq, site: site)
            fields[name]?.content = .shared(SharedText(text.visible, by: writer))
            fields[name]?.plainWriter = writer
        }
    }

    /// True if `{"name":value,…}` of the visible fields exceeds the limits of an object.
    fileprivate var isTooLarge: Bool {
        if fields.count > Limit.objectFields { return true }
        let commas = max(0, fields.count - 1)
        let bytes = fields.reduce(2 + commas) { sum, field in
            sum + JSON.text(field.key).canonical.count + 1 + field.value.canonicalCount
        }
        return bytes > Limit.objectBytes
    }
}

extension Field {
    /// The number of bytes of the value in canonical form; a shared text is counted without serialization.
    fileprivate var canonicalCount: Int {
        guard case .shared(let text) = content else { return value.canonical.count }
        var count = 2
        for element in text.elements where element.isVisible {
            let scalar = element.scalar
            count += scalar.isASCII ? escape(of: UInt8(scalar.value))?.utf8.count ?? 1 : UTF8.width(scalar)
        }
        return count
    }
}
