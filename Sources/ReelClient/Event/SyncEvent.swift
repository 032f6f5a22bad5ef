/// One change of one object.
///
///     .insert("task", id: "cb55", ["title": "Milk", "completed": false])
///     .update("task", id: "cb55", ["completed": true])
///     .update("page", id: "1", operations: ["views": .increment(1)])
///     .delete("task", id: "cb55").guarded(["completed": 12])
public struct SyncChange: Sendable {
    /// The effect of a change on its object.
    public enum Kind: String, Sendable {
        /// Makes the object, or writes the fields over it if it exists. An object that was deleted stays deleted.
        case insert
        /// Writes fields and performs operations. Without any it only touches the object.
        case update
        /// Deletes the object. The id cannot be used again as long as the stream remembers the delete: undo is a new
        /// object.
        case delete
    }

    /// The effect on the object.
    public var kind: Kind
    /// The model, 1 to 128 bytes.
    public var model: String { didSet { hasRandomID = false } }
    /// The id of the object, unique within its model, 1 to 128 bytes.
    public var id: String { didSet { hasRandomID = false } }
    /// The fields to write; `null` removes a field. The last writer in the log wins, field by field.
    public var fields: FieldMap<JSONValue>
    /// The operations that merge with changes of other devices. A name is either here or in `fields`, not in both. For
    /// updates only.
    public var operations: FieldMap<FieldOperation>
    /// The conditions of the change (compare and set), by field. The field's last writer must be this seq; −1: the
    /// field must be absent. If a condition does not hold, every fold consumes the event as rejected.
    public var guards: FieldMap<Int64>
    /// True if the id was drawn at random in this process. Not stored.
    var hasRandomID = false

    init(
        kind: Kind,
        model: String,
        id: String,
        fields: FieldMap<JSONValue>,
        operations: FieldMap<FieldOperation>,
        guards: FieldMap<Int64>
    ) {
        self.kind = kind
        self.model = model
        self.id = id
        self.fields = fields
        self.operations = operations
        self.guards = guards
    }

    /// Returns a change that makes an object. If the object exists already, it is an upsert: it writes these fields and
    /// leaves the others. A deleted object does not return: every fold rejects the event with `deleted`.
    ///
    /// - Parameters:
    ///   - model: the model of the object.
    ///   - id: the id of the object, unique within its model.
    ///   - fields: the values of the fields by name.
    public static func insert(_ model: String, id: String, _ fields: FieldMap<JSONValue> = [:]) -> SyncChange {
        SyncChange(kind: .insert, model: model, id: id, fields: fields, operations: [:], guards: [:])
    }

    /// Returns a change that writes fields of an object and performs operations on others.
    ///
    /// - Parameters:
    ///   - model: the model of the object.
    ///   - id: the id of the object, unique within its model.
    ///   - fields: the values of the fields by name.
    ///   - operations: the operations on other fields by name.
    public static func update(
        _ model: String,
        id: String,
        _ fields: FieldMap<JSONValue> = [:],
        operations: FieldMap<FieldOperation> = [:]
    ) -> SyncChange {
        SyncChange(kind: .update, model: model, id: id, fields: fields, operations: operations, guards: [:])
    }

    /// Returns a change that deletes an object.
    public static func delete(_ model: String, id: String) -> SyncChange {
        SyncChange(kind: .delete, model: model, id: id, fields: [:], operations: [:], guards: [:])
    }

    /// Returns the same change with the condition that each named field was written last by the given seq.
    public func guarded(_ guards: FieldMap<Int64>) -> SyncChange {
        var change = self
        change.guards = guards
        return change
    }
}

extension SyncChange: Hashable {
    /// Returns true if both changes are equal; names are compared by their bytes.
    public static func == (a: SyncChange, b: SyncChange) -> Bool {
        a.kind == b.kind && a.model.utf8.elementsEqual(b.model.utf8) && a.id.utf8.elementsEqual(b.id.utf8)
            && a.fields == b.fields && a.operations == b.operations && a.guards == b.guards
    }

    /// Hashes the kind, the names, the fields, the operations and the guards.
    public func hash(into hasher: inout Hasher) {
        hasher.combine(kind)
        hasher.combine(model)
        hasher.combine(id)
        hasher.combine(fields)
        hasher.combine(operations)
        hasher.combine(guards)
    }
}

/// A change of a field that merges instead of overwriting.
public enum FieldOperation: Sendable, Hashable {
    /// Adds to the number. An absent field counts as 0.
    case increment(Double)
    /// Removes values from the array, then adds values. The array is a set of values. An absent field counts as empty.
    case change(add: [JSONValue], remove: [JSONValue])
    /// Edits the text. Each edit sees the result of the earlier ones. An absent field counts as empty.
    case splice([TextSplice])
}

/// One edit of a text.
public struct TextSplice: Sendable, Hashable {
    /// The position of the edit, in Unicode scalars of the text as this device shows it.
    public var offset: Int64
    /// The number of Unicode scalars to remove.
    public var removed: Int64
    /// The text to insert in their place.
    public var text: String

    /// Creates an edit that replaces a part of a text.
    ///
    /// - Parameters:
    ///   - offset: the number of Unicode scalars before the part. `publish` throws `range` for one beyond the text.
    ///   - removed: the number of Unicode scalars of the part.
    ///   - text: the text to insert in their place.
    public init(at offset: some BinaryInteger, removing removed: some BinaryInteger, inserting text: String = "") {
        self.offset = Int64(clamping: offset)
        self.removed = Int64(clamping: removed)
        self.text = text
    }

    /// Creates an edit that only inserts a text.
    ///
    /// - Parameters:
    ///   - offset: the number of Unicode scalars before the place. `publish` throws `range` for one beyond the text.
    ///   - text: the text to insert.
    public init(at offset: some BinaryInteger, inserting text: String) {
        self.init(at: offset, removing: 0, inserting: text)
    }
}

/// An event that an app publishes: one change, or a batch of changes that are applied all or none.
public struct SyncEvent: Sendable, Hashable {
    /// The changes: one, or 1 to 100 of a batch. None for a no-op, which only uses an op.
    public let changes: [SyncChange]
    /// True if the event is written as a batch, also with only one change.
    public let isBatch: Bool
    /// True for a no-op that ends its site and frees the site's place in the stream.
    let endsSite: Bool

    /// Creates an event with one change.
    public init(_ change: SyncChange) {
        changes = [change]
        isBatch = false
        endsSite = false
    }

    /// Creates a batch of 1 to 100 changes in order, which are applied all or none. A later change sees the earlier
    /// ones.
    public init(batch changes: [SyncChange]) {
        self.changes = changes
        isBatch = true
        endsSite = false
    }

    private init(endsSite: Bool = false) {
        changes = []
        isBatch = false
        self.endsSite = endsSite
    }

    /// An event without effect.
    static let noop = SyncEvent()

    /// An event without effect that ends its site.
    static let last = SyncEvent(endsSite: true)

    /// True for an event of the client itself, which no app has published.
    var isInternal: Bool { isFiller || endsSite }

    /// True if a change names a field as text, so that later splices of the author may count on that text.
    var namesText: Bool { !textFields.isEmpty }

    /// The one change; nil for a batch or a no-op.
    var single: SyncChange? { isBatch ? nil : changes.first }

    /// True if the meaning depends on the state that the author saw: splices count on a text, guards on seqs. A guard
    /// of −1 names no seq, because it only requires an absent field.
    var dependsOnBase: Bool {
        hasSplices || changes.contains { change in change.guards.contains { $0.value != -1 } }
    }

    /// True if the event counts on a text: on all text that its site has written, and on the text of others up to its
    /// base.
    var hasSplices: Bool {
        changes.contains { change in
            change.operations.contains { if case .splice = $0.value { true } else { false } }
        }
    }

    /// Returns an event that makes an object. If the object exists already, it is an upsert: it writes these fields and
    /// leaves the others. A deleted object does not return: every fold rejects the event with `deleted`.
    ///
    /// - Parameters:
    ///   - model: the model of the object.
    ///   - id: the id of the object, unique within its model.
    ///   - fields: the values of the fields by name.
    public static func insert(_ model: String, id: String, _ fields: FieldMap<JSONValue> = [:]) -> SyncEvent {
        SyncEvent(.insert(model, id: id, fields))
    }

    /// Returns an event that writes fields of an object and performs operations on others.
    ///
    /// - Parameters:
    ///   - model: the model of the object.
    ///   - id: the id of the object, unique within its model.
    ///   - fields: the values of the fields by name.
    ///   - operations: the operations on other fields by name.
    public static func update(
        _ model: String,
        id: String,
        _ fields: FieldMap<JSONValue> = [:],
        operations: FieldMap<FieldOperation> = [:]
    ) -> SyncEvent {
        SyncEvent(.update(model, id: id, fields, operations: operations))
    }

    /// Returns an event that deletes an object.
    public static func delete(_ model: String, id: String) -> SyncEvent {
        SyncEvent(.delete(model, id: id))
    }

    /// Returns a batch of 1 to 100 changes in order, which are applied all or none.
    public static func batch(_ changes: [SyncChange]) -> SyncEvent {
        SyncEvent(batch: changes)
    }
}
