internal import ReelCore

/// The event that replaces one that cannot be written to the log, because every op must be used.
extension SyncEvent {
    /// The seq of a guard that never holds: no log reaches it.
    private static let impossibleSeq: Seq = 1 << 53 - 1
    /// The largest filler that names the fields of the replaced event, in bytes.
    private static let namedFillerMaxBytes = 8 << 10

    /// An event that no fold applies and that names the same fields as text. So every fold also rejects the later
    /// splices of its site that may count on the missing text.
    var filler: SyncEvent {
        let texts = textFields
        guard !texts.isEmpty else { return .noop }
        // The fold replaces more than 16 marks by one for all fields of the site, which any 17 fields bring about.
        let count = texts.reduce(0) { $0 + $1.fields.count }
        let named = Self.rejected(texts)
        if count <= 16, named.encoded(base: 0).count <= Self.namedFillerMaxBytes { return named }
        let any = (10...26).reduce(into: FieldMap<JSONValue>()) { $0["f\($1)"] = .string("") }
        return Self.rejected([.update("reel", id: "lost", any)])
    }

    /// True for an event that replaces another one whose outcome the app knows.
    var isFiller: Bool {
        if self == .noop { return true }
        guard let first = changes.first, first.guards.count == 1,
            first.guards.allSatisfy({ $0.value == Self.impossibleSeq })
        else { return false }
        return changes.allSatisfy { change in
            change.kind == .update && change.operations.isEmpty && change.fields.allSatisfy { $0.value == .string("") }
        }
    }

    /// The fields that the event names as text, with empty texts, as one change for each object.
    var textFields: [SyncChange] {
        var texts: [SyncChange] = []
        for change in changes {
            var names = change.fields.filter { $0.value.isTextOrNull }.map(\.name)
            names += change.operations.filter { $0.value.isSplice }.map(\.name)
            guard !names.isEmpty else { continue }
            let index =
                texts.firstIndex {
                    $0.model.utf8.elementsEqual(change.model.utf8) && $0.id.utf8.elementsEqual(change.id.utf8)
                } ?? texts.endIndex
            if index == texts.endIndex { texts.append(.update(change.model, id: change.id)) }
            for name in names { texts[index].fields[name] = .string("") }
        }
        return texts
    }

    /// Returns the changes as one event whose first change has a guard that never holds.
    private static func rejected(_ changes: [SyncChange]) -> SyncEvent {
        var changes = changes
        if let name = changes.first?.fields.first?.name { changes[0].guards = [name: impossibleSeq] }
        return changes.count == 1 ? SyncEvent(changes[0]) : SyncEvent(batch: changes)
    }
}

extension JSONValue {
    fileprivate var isTextOrNull: Bool {
        switch self {
        case .string, .null: true
        case .bool, .integer, .number, .array, .object: false
        }
    }
}

extension FieldOperation {
    fileprivate var isSplice: Bool {
        if case .splice = self { true } else { false }
    }
}
