/// An event in the form in which its author wrote it.
struct Event: Sendable {
    let site: Site
    let op: Int64
    let base: Int64
    let by: Text?
    /// True if the site ends with this event.
    let last: Bool
    /// The parts: one for insert, update and delete, several for a batch, none for a noop.
    let parts: [Part]

    /// The fields that a part names as text: by a string or null in `fields`, or by a splice. If the event is rejected,
    /// later offsets of the author in these fields may count on a text that is missing.
    var textFields: Set<FieldName> {
        parts.reduce(into: splicedFields) { names, part in
            for field in part.fields where field.value.isNull || field.value.text != nil {
                names.insert(FieldName(part.object, field.name))
            }
        }
    }

    /// The fields that a part splices.
    var splicedFields: Set<FieldName> {
        parts.reduce(into: []) { names, part in
            for (name, operation) in part.operations {
                if case .splice = operation { names.insert(FieldName(part.object, name)) }
            }
        }
    }

    /// The fields that are in a part's `fields`, with any value.
    var plainFields: Set<FieldName> {
        parts.reduce(into: []) { names, part in
            for field in part.fields { names.insert(FieldName(part.object, field.name)) }
        }
    }
}

/// A change of one object.
struct Part: Sendable {
    enum Kind: String { case insert, update, delete }

    let kind: Kind
    let object: ObjectName
    /// Name and value; a null value removes the field.
    let fields: [(name: Text, value: JSON)]
    let operations: [(name: Text, operation: Operation)]
    let guards: [(name: Text, seq: Int64)]
}

struct ObjectName: Hashable, Comparable, Sendable {
    let model: Text
    let id: Text

    static func < (a: ObjectName, b: ObjectName) -> Bool {
        (a.model, a.id) < (b.model, b.id)
    }
}

/// The name of a field. Neither the field nor its object need exist.
struct FieldName: Hashable, Comparable, Sendable {
    let object: ObjectName
    let field: Text

    init(_ object: ObjectName, _ field: Text) {
        self.object = object
        self.field = field
    }

    static func < (a: FieldName, b: FieldName) -> Bool {
        (a.object, a.field) < (b.object, b.field)
    }
}

enum Operation: Sendable {
    case increment(by: Double)
    case change(add: [JSON], remove: [JSON])
    case splice([Triple])
}

struct Triple: Sendable {
    let offset: Int64
    let removed: Int64
    let text: [Unicode.Scalar]
}

// MARK: - Reading

extension Event {
    init(_ json: JSON) throws(Fault) {
        var members = try Members(json)
        let type = try members.text("type")
        site = try members.site("site")
        if site == .nobody { throw Fault("an event with the nil UUID as its site") }
        op = try members.integer("op", from: 0)
        base = try members.integer("base", from: -1)
        by = try members.optionalName("by")
        if members.has("at") { _ = try members.integer("at", from: 0) }
        last = members.has("last")
        if last, case .bool(true) = try members.take("last") {} else if last { throw Fault("last is not true") }
        switch type.string {
        case "noop":
            parts = []
        case "batch":
            let events = try members.array("events")
            guard (1...100).contains(events.count) else { throw Fault("a batch of \(events.count) parts") }
            parts = try events.map { (json) throws(Fault) in
                var members = try Members(json)
                let part = try Part(members.text("type"), &members)
                try members.end()
                return part
            }
        default:
            parts = [try Part(type, &members)]
        }
        try members.end()
    }
}

extension Part {
    fileprivate init(_ type: Text, _ members: inout Members) throws(Fault) {
        guard let kind = Kind(rawValue: type.string) else { throw Fault("an unknown type") }
        self.kind = kind
        object = ObjectName(model: try members.name("model"), id: try members.name("id"))
        fields = kind == .delete ? [] : try members.named("fields")
        operations = try (kind == .update ? members.named("ops") : []).map { (name, value) throws(Fault) in
            (name, try Operation(value))
        }
        guards = try members.named("if").map { (name, value) throws(Fault) in
            guard let seq = value.integer, seq >= -1 else { throw Fault("a guard that is no seq") }
            return (name, seq)
        }
        let plain = Set(fields.map(\.name))
        guard operations.allSatisfy({ !plain.contains($0.name) }) else { throw Fault("a name in fields and in ops") }
    }
}

extension Operation {
    fileprivate init(_ json: JSON) throws(Fault) {
        var members = try Members(json)
        if members.has("inc") {
            guard case .number(let number) = try members.take("inc") else { throw Fault("inc of no number") }
            self = .increment(by: number)
        } else if members.has("splice") {
            let triples = try members.array("splice")
            guard !triples.isEmpty else { throw Fault("a splice of nothing") }
            self = .splice(try triples.map { (json) throws(Fault) in try Triple(json) })
        } else {
            guard members.has("add") || members.has("remove") else { throw Fault("an unknown operation") }
            let add = members.has("add") ? try members.array("add") : []
            let remove = members.has("remove") ? try members.array("remove") : []
            self = .change(add: add, remove: remove)
        }
        try members.end()
    }
}

extension Triple {
    fileprivate init(_ json: JSON) throws(Fault) {
        guard let values = json.array, values.count == 3,
            let offset = values[0].integer, offset >= 0,
            let removed = values[1].integer, removed >= 0,
            let text = values[2].text
        else { throw Fault("a splice is no [offset, removed, text]") }
        self.init(offset: offset, removed: removed, text: Array(text.string.unicodeScalars))
    }
}
