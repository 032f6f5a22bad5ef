internal import ReelCore

// The errors of `publish` for an event that this device knows to be without effect.
extension ReelError {
    /// Creates the error for a change that the fold would reject.
    /// - Parameters:
    ///   - change: the change.
    ///   - code: the code of the rejection.
    ///   - part: the change with only the guard or the operation that causes the rejection; nil: none causes it alone.
    init(refusing change: SyncChange, _ code: ErrorCode, because part: SyncChange? = nil) {
        let object = ObjectName(change.model, id: change.id)
        let name = part?.guards.first?.name ?? part?.operations.first?.name
        let field = name.map { "the field \($0.debugDescription) of \(object)" } ?? "a field of \(object)"
        let message =
            switch code {
            case .deleted: "found \(object), which was deleted: make a new object with another id"
            case .noObject where change.kind == .delete: "found a delete of \(object), which this stream does not have"
            case .noObject: "found an update of \(object), which this stream does not have: insert it first"
            case .guard: Self.guardMessage(field, expected: part?.guards.first?.value)
            case .type: Self.typeMessage(field, part?.operations.first?.value)
            case .range: Self.rangeMessage(field, part?.operations.first?.value)
            case .stale: "found a splice of \(field), whose text was replaced since: read the object again"
            case .tooLarge:
                "found \(object) with more than \(Limits.fields) fields or \(Limits.object) bytes, with this change"
            default: "found \(object): \(code.entry.meaning)"
            }
        self.init(code, message)
    }

    private static func guardMessage(_ field: String, expected: Seq?) -> String {
        let writer = expected.map {
            $0 == .none ? ", expected no such field" : ", expected seq \($0) as its last writer"
        }
        return "found a guard of \(field) that does not hold\(writer ?? ""): read the object again, and decide again"
    }

    private static func typeMessage(_ field: String, _ operation: FieldOperation?) -> String {
        switch operation {
        case .increment: "found an increment of \(field), which is not a number"
        case .change: "found a change of a set in \(field), which is not an array"
        case .splice: "found a splice of \(field), which is not a text"
        case nil: "found an operation on \(field) that does not fit its value"
        }
    }

    private static func rangeMessage(_ field: String, _ operation: FieldOperation?) -> String {
        switch operation {
        case .increment: "found an increment of \(field) to a sum beyond the largest number"
        case .splice: "found a splice beyond the end of the text in \(field): offsets count Unicode scalars"
        case .change, nil: "found a splice beyond the end of a text, or a sum beyond the largest number, in \(field)"
        }
    }
}

extension SyncChange {
    /// Returns this change once for each guard or operation that can cause a rejection with this code, with only this
    /// guard or operation.
    func parts(for code: ErrorCode) -> [SyncChange] {
        switch code {
        case .guard: guards.map { part(guards: [$0.name: $0.value]) }
        case .type, .range: operations.map { part(operations: [$0.name: $0.value]) }
        case .stale:
            operations.compactMap { name, operation in
                if case .splice = operation { part(operations: [name: operation]) } else { nil }
            }
        default: []
        }
    }

    private func part(operations: FieldMap<FieldOperation> = [:], guards: FieldMap<Int64> = [:]) -> SyncChange {
        SyncChange(kind: kind, model: model, id: id, fields: [:], operations: operations, guards: guards)
    }
}
