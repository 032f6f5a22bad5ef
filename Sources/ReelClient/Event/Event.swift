/// One change of one object.
///
///     .insert("task", "cb55", ["title": "Milk", "completed": false])
///     .update("task", "cb55", ["completed": true])
///     .update("page", "1", operations: ["views": .increment(1)])
///     .delete("task", "cb55").guarded(["completed": 12])
public struct Change: Sendable {
    /// What happens to the object.
    public enum Kind: String, Sendable {
        /// Makes it, or writes the fields over it if it is alive. One that was deleted stays so.
        case insert
        /// Writes fields and does operations; without any it only touches the object.
        case update
        /// Deletes it. The id cannot be used again as long as the stream remembers the delete: undo is a new object.
        case delete
    }

    /// What happens to the object.
    public var kind: Kind
    /// The kind of object, 1 to 128 bytes.
    public var model: String { didSet { hasRandomID = false } }
    /// The object among those of its model, 1 to 128 bytes.
    public var id: String { didSet { hasRandomID = false } }
    /// Plain writes; `null` removes the field. The last writer in the log wins, field by field.
    public var fields: Members<JSON>
    /// Operations that merge with what others do. A name stands here or in `fields`, not in both. Updates only.
    public var operations: Members<Operation>
    /// Compare and set: the field's last writer must be this seq, −1: the field must be absent. Else everybody
    /// consumes the event as rejected.
    public var guards: Members<Int64>
    /// The id was drawn at random in this process. Not stored.
    var hasRandomID = false

    init(
        kind: Kind,
        model: String,
        id: String,
        fields: Members<JSON>,
        operations: Members<Operation>,
        guards: Members<Int64>
    ) {
        self.kind = kind
        self.model = model
        self.id = id
        self.fields = fields
        self.operations = operations
        self.guards = guards
    }

    /// Makes an object; where it is there already, an upsert: writes these fields over its own and leaves the others.
    /// One that was deleted does not come back: everybody rejects the event with `deleted`.
    public static func insert(_ model: String, _ id: String, _ fields: Members<JSON> = [:]) -> Change {
        Change(kind: .insert, model: model, id: id, fields: fields, operations: [:], guards: [:])
    }

    /// Writes fields of an object and does operations on others.
    public static func update(
        _ model: String,
        _ id: String,
        _ fields: Members<JSON> = [:],
        operations: Members<Operation> = [:]
    ) -> Change {
        Change(kind: .update, model: model, id: id, fields: fields, operations: operations, guards: [:])
    }

    /// Deletes an object.
    public static func delete(_ model: String, _ id: String) -> Change {
        Change(kind: .delete, model: model, id: id, fields: [:], operations: [:], guards: [:])
    }

    /// The same change on condition that each named field was written last by this seq.
    public func guarded(_ guards: Members<Int64>) -> Change {
        var change = self
        change.guards = guards
        return change
    }
}

extension Change: Equatable {
    /// Whether both say the same.
    public static func == (a: Change, b: Change) -> Bool {
        a.kind == b.kind && a.model.utf8.elementsEqual(b.model.utf8) && a.id.utf8.elementsEqual(b.id.utf8)
            && a.fields == b.fields && a.operations == b.operations && a.guards == b.guards
    }
}

/// A change of a field that merges instead of overwriting.
public enum Operation: Sendable, Equatable {
    /// Adds to the number; an absent field counts as 0.
    case increment(Double)
    /// Removes values from the array, then adds values: it is a set of values. An absent field counts as empty.
    case change(add: [JSON], remove: [JSON])
    /// Edits the text; each edit sees the ones before it. An absent field counts as empty.
    case splice([Splice])
}

/// One edit of a text.
public struct Splice: Sendable, Equatable {
    /// Where, in Unicode scalars of the text as this device's fold shows it.
    public var offset: Int64
    /// How many Unicode scalars go.
    public var removed: Int64
    /// What comes in their place.
    public var text: String

    /// Replaces `removed` scalars behind `offset` by `text`.
    public init(_ offset: Int64, _ removed: Int64, _ text: String) {
        self.offset = offset
        self.removed = removed
        self.text = text
    }
}

/// What an app publishes: one change, or a batch of those that is applied all or none.
public struct Event: Sendable, Equatable {
    /// One change, or 1 to 100 of a batch; none: a no-op, which only fills an op.
    public let changes: [Change]
    /// Written as a batch, also if there is only one change.
    public let isBatch: Bool
    /// The site of the event ends with it: a no-op that frees the site's place in the stream.
    let endsSite: Bool

    /// One change.
    public init(_ change: Change) {
        changes = [change]
        isBatch = false
        endsSite = false
    }

    /// Changes in order, applied all or none; a later one sees the earlier. 1 to 100.
    public init(batch changes: [Change]) {
        self.changes = changes
        isBatch = true
        endsSite = false
    }

    private init(endsSite: Bool = false) {
        changes = []
        isBatch = false
        self.endsSite = endsSite
    }

    /// Has no effect.
    static let noop = Event()

    /// Has no effect, and ends its site.
    static let last = Event(endsSite: true)

    /// The client's own: no app has published it.
    var isInternal: Bool { isFiller || endsSite }

    /// A part names a field as text: later splices of the author may count on that text.
    var namesText: Bool { !textFields.isEmpty }

    /// The one change, unless it is a batch or a no-op.
    var single: Change? { isBatch ? nil : changes.first }

    /// Its meaning depends on the state that its author saw: splices count on a text, guards on seqs. A guard of −1
    /// names no seq: it asks only if the field is absent.
    var dependsOnBase: Bool {
        hasSplices || changes.contains { change in change.guards.contains { $0.value != -1 } }
    }

    /// It counts on a text: on all that its site has written to it, and on what others had up to its base.
    var hasSplices: Bool {
        changes.contains { change in
            change.operations.contains { if case .splice = $0.value { true } else { false } }
        }
    }

    /// Makes an object; where it is there already, an upsert: writes these fields over its own and leaves the others.
    /// One that was deleted does not come back: everybody rejects the event with `deleted`.
    public static func insert(_ model: String, _ id: String, _ fields: Members<JSON> = [:]) -> Event {
        Event(.insert(model, id, fields))
    }

    /// Writes fields of an object and does operations on others.
    public static func update(
        _ model: String,
        _ id: String,
        _ fields: Members<JSON> = [:],
        operations: Members<Operation> = [:]
    ) -> Event {
        Event(.update(model, id, fields, operations: operations))
    }

    /// Deletes an object.
    public static func delete(_ model: String, _ id: String) -> Event {
        Event(.delete(model, id))
    }

    /// Changes in order, applied all or none.
    public static func batch(_ changes: [Change]) -> Event {
        Event(batch: changes)
    }
}
