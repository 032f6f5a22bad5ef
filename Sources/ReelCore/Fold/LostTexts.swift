/// The texts of one site that are missing in the stream because an event was rejected. Until the site knows of the
/// rejection, the offsets of its later splices may count on such a text.
///
/// A value without I/O. The fold keeps one for each site, and a device's overlay makes predictions with one.
package struct LostTexts: Equatable, Sendable {
    /// A field that an event of the site named as text, and that the stream does not hold as the site wrote it.
    package struct Field: Equatable, Sendable {
        /// Model, a zero byte, id, a zero byte, field name. Each is escaped as in canonical JSON, without quotes.
        package let key: [UInt8]
        /// Splices of the field with a base below this seq are stale.
        package fileprivate(set) var seq: Seq
    }

    /// Splices of any field with a base below this seq are stale (`r` on the wire); −1 if there is no such limit.
    package internal(set) var all = Seq.none
    /// The lost fields, ordered by the bytes of their keys.
    package private(set) var fields: [Field] = []

    /// Creates a value without lost texts.
    package init() {}

    /// The number of lost fields.
    var count: Int { fields.count }

    /// Returns true if a splice with this base may count on a lost text of the field. All names are escaped as in
    /// canonical JSON, without quotes.
    ///
    /// - Parameters:
    ///   - model: the model of the object.
    ///   - id: the id of the object.
    ///   - name: the name of the field.
    ///   - base: the base of the splice.
    package func covers(model: Bytes, id: Bytes, name: Bytes, base: Seq) -> Bool {
        if base < all { return true }
        if fields.isEmpty { return false }
        return fields.contains { $0.seq > base && Self.matches($0.key, model, id, name) }
    }

    // MARK: Changes

    /// Notes the result of an event of the site that was consumed at `seq`.
    ///
    /// - Parameters:
    ///   - refusal: the reason of the rejection; nil if the event was applied.
    ///   - event: the event.
    ///   - value: the bytes that `event` was parsed from.
    ///   - seq: the seq of the event.
    ///   - horizon: marks at or below this seq are not kept.
    ///   - others: the number of lost fields of the stream's other sites. If the site or the stream has too many, one
    ///     mark for all fields replaces the marks of this site.
    package mutating func note(
        _ refusal: ErrorCode?,
        of event: ParsedEvent,
        _ value: Bytes,
        at seq: Seq,
        horizon: Seq,
        others: Int = 0
    ) {
        guard refusal != nil else { return apply(event, value) }
        reject(event, value, at: seq, horizon: horizon)
        if count > Limits.lostPerSite || others + count > Limits.lostPerStream { collapse() }
    }

    /// Notes that the event at `seq` was rejected.
    ///
    /// Every field that the event names as text is lost up to a certain seq. That seq is the smallest mark above the
    /// event's base that its own splices had to respect; if there is none, it is `seq`.
    ///
    /// An author that has read up to that mark knows that everything after it was rejected as well. Therefore an event
    /// that is stale because of a mark never raises that mark. Marks at or below the horizon are not kept, because
    /// every splice with such a base is stale anyway.
    private mutating func reject(_ event: ParsedEvent, _ value: Bytes, at seq: Seq, horizon: Seq) {
        let mark = firstMark(of: event, value) ?? seq
        guard mark > horizon else { return }
        for part in event.parts {
            let (model, id) = (value[part.model], value[part.id])
            for field in event.fields[part.fields] where field.isText || field.removes {
                lose(Self.key(model, id, value[field.name]), mark)
            }
            for operation in event.operations[part.ops] where operation.isSplice {
                lose(Self.key(model, id, value[operation.name]), mark)
            }
        }
    }

    /// Notes that the event was applied: its plain writes replace the lost texts.
    private mutating func apply(_ event: ParsedEvent, _ value: Bytes) {
        if fields.isEmpty { return }
        for part in event.parts {
            let (model, id) = (value[part.model], value[part.id])
            for field in event.fields[part.fields] {
                fields.removeAll { Self.matches($0.key, model, id, value[field.name]) }
            }
        }
    }

    /// Merges the marks of all fields into `all`.
    private mutating func collapse() {
        all = fields.reduce(all) { max($0, $1.seq) }
        fields = []
    }

    /// Drops the marks at or below the horizon. Returns false if there are none.
    mutating func forget(upTo horizon: Seq) -> Bool {
        guard fields.contains(where: { $0.seq <= horizon }) else { return false }
        fields.removeAll { $0.seq <= horizon }
        return true
    }

    /// Appends a field. Returns false if its key is not greater than all others.
    mutating func append(model: Bytes, id: Bytes, name: Bytes, seq: Seq) -> Bool {
        let key = Self.key(model, id, name)
        if let last = fields.last, Self.order(last.key, key) >= 0 { return false }
        fields.append(Field(key: key, seq: seq))
        return true
    }

    /// Replaces the fields of these objects with those of another value.
    /// - Parameter keys: keys of objects: model, a zero byte, id.
    package mutating func reset(to other: LostTexts, ofObjects keys: Set<[UInt8]>) {
        fields.removeAll { keys.contains($0.objectKey) }
        fields += other.fields.filter { keys.contains($0.objectKey) }
        fields.sort { Self.order($0.key, $1.key) < 0 }
    }

    private mutating func lose(_ key: [UInt8], _ seq: Seq) {
        let index = fields.firstIndex { Self.order($0.key, key) >= 0 } ?? fields.endIndex
        if index < fields.endIndex, fields[index].key == key {
            fields[index].seq = max(fields[index].seq, seq)
        } else {
            fields.insert(Field(key: key, seq: seq), at: index)
        }
    }

    /// Returns the smallest mark above the event's base that its splices have to respect; nil if there is none. No mark
    /// can reject an event without a splice. Its author therefore learns of the rejection only at the event's own seq.
    private func firstMark(of event: ParsedEvent, _ value: Bytes) -> Seq? {
        guard event.operations.contains(where: { $0.isSplice }) else { return nil }
        var first = all > event.base ? all : nil
        if fields.isEmpty { return first }
        for part in event.parts {
            let (model, id) = (value[part.model], value[part.id])
            for operation in event.operations[part.ops] where operation.isSplice {
                for field in fields
                where field.seq > event.base && Self.matches(field.key, model, id, value[operation.name]) {
                    first = min(first ?? .max, field.seq)
                }
            }
        }
        return first
    }

    // MARK: Keys

    private static func key(_ model: Bytes, _ id: Bytes, _ name: Bytes) -> [UInt8] {
        var key: [UInt8] = []
        key.reserveCapacity(model.count + id.count + name.count + 2)
        key.append(contentsOf: model)
        key.append(0)
        key.append(contentsOf: id)
        key.append(0)
        key.append(contentsOf: name)
        return key
    }

    private static func matches(_ key: [UInt8], _ model: Bytes, _ id: Bytes, _ name: Bytes) -> Bool {
        guard key.count == model.count + id.count + name.count + 2 else { return false }
        return key.withUnsafeBytes { key in
            let (second, third) = (model.count + 1, model.count + id.count + 2)
            return key[model.count] == 0 && key[third - 1] == 0
                && Bytes(rebasing: key[..<model.count]).equals(model)
                && Bytes(rebasing: key[second..<third - 1]).equals(id)
                && Bytes(rebasing: key[third...]).equals(name)
        }
    }

    private static func order(_ a: [UInt8], _ b: [UInt8]) -> Int {
        a.withUnsafeBytes { a in b.withUnsafeBytes { NameOrder.bytes(a, $0) } }
    }
}

extension LostTexts.Field {
    /// Model, a zero byte, id.
    package var objectKey: [UInt8] { Array(key[..<(key.lastIndex(of: 0) ?? key.endIndex)]) }

    /// Calls `body` with model, id and field name.
    func split<R>(_ body: (_ model: Bytes, _ id: Bytes, _ name: Bytes) -> R) -> R {
        key.withUnsafeBytes { key in
            let parts = key.split(separator: 0, omittingEmptySubsequences: false).map { Bytes(rebasing: $0) }
            return body(parts[0], parts[1], parts[2])
        }
    }
}

extension LostTexts.Field: CustomStringConvertible {
    /// The text `MODEL/ID FIELD`.
    package var description: String {
        split { "\(JSONText($0).string)/\(JSONText($1).string) \(JSONText($2).string)" }
    }
}

extension ParsedEvent.Operation {
    /// True if the operation is a splice.
    package var isSplice: Bool {
        if case .splice = kind { true } else { false }
    }
}

extension ParsedEvent {
    /// True if a part names a field as text: with a string or null in `fields`, or with a splice. Later offsets of the
    /// author may count on that text.
    package var namesText: Bool {
        fields.contains { $0.isText || $0.removes } || operations.contains { $0.isSplice }
    }

    /// Returns the key of a part's object, in the form of `Fold.key(ofObject:)`.
    package func key(of part: Part, _ value: Bytes) -> [UInt8] {
        Array(value[part.model]) + [0] + Array(value[part.id])
    }

    /// Returns the names of the fields that a part names as text.
    package func texts(of part: Part) -> [Slice] {
        fields[part.fields].filter { $0.isText || $0.removes }.map(\.name)
            + operations[part.ops].filter(\.isSplice).map(\.name)
    }
}
