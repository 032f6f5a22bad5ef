package import ReelCore

extension SyncEvent {
    /// Returns the canonical bytes of the event. With `author` they are the form for a gateway, without it the form
    /// that the queue stores.
    func encoded(base: Seq?, author: EventID? = nil) -> [UInt8] {
        var object = MemberWriter()
        if let base { object.member("base") { $0.append(integer: base) } }
        if isBatch {
            object.member("events") { JSONValue.write(changes, to: &$0) { $0.write(to: &$1) } }
        } else {
            single?.writeEarlyMembers(to: &object)
        }
        if endsSite { object.member("last") { $0.append(contentsOf: "true".utf8) } }
        if let author { object.member("op") { $0.append(integer: author.op) } }
        if let single { single.writeOperations(to: &object) }
        if let author { object.member("site") { $0.append(quoted: author.site.description) } }
        let type = isBatch ? "batch" : single?.kind.rawValue ?? "noop"
        object.member("type") { $0.append(quoted: type) }
        return object.finish()
    }

    /// Reads an event from its stored bytes, and its base. Nil if the bytes are no stored event.
    package init?(encoded bytes: Bytes, base: inout Seq) {
        guard let object = JSONValue(parsing: bytes)?.object, let number = object["base"]?.integer else { return nil }
        base = number
        self.init(object)
    }

    /// Reads an event from the members of its JSON form; nil if they are none.
    init?(_ object: FieldMap<JSONValue>) {
        switch object["type"]?.string {
        case "noop": self = object["last"] == nil ? .noop : .last
        case "batch":
            var changes: [SyncChange] = []
            for part in object["events"]?.array ?? [] {
                guard let members = part.object, let change = SyncChange(members) else { return nil }
                changes.append(change)
            }
            self.init(batch: changes)
        default:
            guard let change = SyncChange(object) else { return nil }
            self.init(change)
        }
    }
}

extension SyncEvent: CustomStringConvertible {
    /// The event as canonical JSON (RFC 8785), in the form that `reel publish` takes.
    public var description: String { String(decoding: encoded(base: nil), as: UTF8.self) }
}

extension SyncChange {
    /// Writes a change of a batch.
    fileprivate func write(to bytes: inout [UInt8]) {
        var object = MemberWriter()
        writeEarlyMembers(to: &object)
        writeOperations(to: &object)
        object.member("type") { $0.append(quoted: kind.rawValue) }
        bytes += object.finish()
    }

    /// Writes the members that come before `op`.
    fileprivate func writeEarlyMembers(to object: inout MemberWriter) {
        if !fields.isEmpty { object.member("fields") { JSONValue.write(fields, to: &$0) { $0.write(to: &$1) } } }
        object.member("id") { $0.append(quoted: id) }
        if !guards.isEmpty { object.member("if") { JSONValue.write(guards, to: &$0) { $1.append(integer: $0) } } }
        object.member("model") { $0.append(quoted: model) }
    }

    fileprivate func writeOperations(to object: inout MemberWriter) {
        guard !operations.isEmpty else { return }
        object.member("ops") { JSONValue.write(operations, to: &$0) { $0.write(to: &$1) } }
    }

    fileprivate init?(_ object: FieldMap<JSONValue>) {
        guard let kind = object["type"]?.string.flatMap(Kind.init), let model = object["model"]?.string,
            let id = object["id"]?.string
        else { return nil }
        self.init(
            kind: kind,
            model: model,
            id: id,
            fields: object["fields"]?.object ?? [:],
            operations: [:],
            guards: [:]
        )
        for (name, value) in object["ops"]?.object ?? [:] {
            guard let members = value.object, let operation = FieldOperation(members) else { return nil }
            operations[name] = operation
        }
        for (name, value) in object["if"]?.object ?? [:] {
            guard let seq = value.integer else { return nil }
            guards[name] = seq
        }
    }
}

extension FieldOperation {
    fileprivate func write(to bytes: inout [UInt8]) {
        var object = MemberWriter()
        switch self {
        case .increment(let amount):
            object.member("inc") { JSONValue.number(amount).write(to: &$0) }
        case .change(let add, let remove):
            object.member("add") { JSONValue.write(add, to: &$0) { $0.write(to: &$1) } }
            object.member("remove") { JSONValue.write(remove, to: &$0) { $0.write(to: &$1) } }
        case .splice(let splices):
            object.member("splice") { JSONValue.write(splices, to: &$0) { $0.write(to: &$1) } }
        }
        bytes += object.finish()
    }

    fileprivate init?(_ object: FieldMap<JSONValue>) {
        if let amount = object["inc"]?.number {
            self = .increment(amount)
        } else if let triples = object["splice"]?.array {
            var splices: [TextSplice] = []
            for triple in triples {
                guard let parts = triple.array, parts.count == 3, let offset = parts[0].integer,
                    let removed = parts[1].integer, let text = parts[2].string
                else { return nil }
                splices.append(TextSplice(at: offset, removing: removed, inserting: text))
            }
            self = .splice(splices)
        } else {
            self = .change(add: object["add"]?.array ?? [], remove: object["remove"]?.array ?? [])
        }
    }
}

extension TextSplice {
    fileprivate func write(to bytes: inout [UInt8]) {
        bytes += "[\(offset),\(removed),".utf8
        bytes.append(quoted: text)
        bytes.append(UInt8(ascii: "]"))
    }
}

extension JSONValue {
    /// The number as an integer that a double holds exactly; nil for any other value.
    fileprivate var integer: Int64? {
        guard let number, let integer = Int64(exactly: number), integer.magnitude <= largestInteger else { return nil }
        return integer
    }
}

/// A writer for the members of one object. The caller gives them in canonical order.
private struct MemberWriter {
    private var bytes: [UInt8] = [UInt8(ascii: "{")]

    mutating func member(_ name: StaticString, _ value: (inout [UInt8]) -> Void) {
        if bytes.count > 1 { bytes.append(UInt8(ascii: ",")) }
        bytes.append(UInt8(ascii: "\""))
        bytes.append(contentsOf: UnsafeBufferPointer(start: name.utf8Start, count: name.utf8CodeUnitCount))
        bytes += [UInt8(ascii: "\""), UInt8(ascii: ":")]
        value(&bytes)
    }

    consuming func finish() -> [UInt8] {
        bytes.append(UInt8(ascii: "}"))
        return bytes
    }
}
