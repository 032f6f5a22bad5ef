internal import ReelCore

/// The changes of objects in several turns, merged into one per object.
struct MergedChanges {
    private struct Merged {
        var existed: Bool
        var origin: ObjectChange.Origin = []
        var old: FieldMap<ObjectChange.OldValue> = [:]
        /// True if `old` has all fields that the object had at the token.
        var isWhole = false
    }

    private var objects: [Overlay.Key: Merged] = [:]

    /// Adds the changes of a later turn.
    mutating func add(_ records: [ChangeRecord]) {
        for record in records {
            var merged = objects[record.key] ?? Merged(existed: record.existed)
            merged.origin.formUnion(record.origin)
            if !merged.isWhole { merged.old = record.old.merging(merged.old) }
            merged.isWhole = merged.isWhole || record.existed != record.exists
            objects[record.key] = merged
        }
    }

    /// Returns the differences to the present objects, sorted by their names.
    ///
    /// - Parameter now: returns the present object of a key.
    /// - Throws: The error of `now`.
    func changes(
        _ now: (Overlay.Key) throws(ReelError) -> SyncObject?
    ) throws(ReelError) -> [ObjectChange] {
        var changes: [ObjectChange] = []
        for (key, merged) in objects.sorted(by: { KeyOrder.precedes($0.key, $1.key) }) {
            let object = try now(key)
            let kind: ObjectChange.Kind
            switch (merged.existed, object != nil) {
            case (false, false): continue
            case (false, true): kind = .inserted
            case (true, false): kind = .deleted
            case (true, true): kind = .updated
            }
            let changed = Self.changed(merged, object)
            if kind == .updated, changed.isEmpty { continue }
            changes.append(
                ObjectChange(
                    name: ObjectName(key),
                    kind: kind,
                    origin: merged.origin,
                    object: object,
                    changed: changed
                )
            )
        }
        return changes
    }

    /// Returns the fields that differ now from those at the token, with their old values.
    private static func changed(_ merged: Merged, _ object: SyncObject?) -> FieldMap<ObjectChange.OldValue> {
        var old = merged.old
        guard let object else { return old }
        if merged.isWhole { for name in object.fields.names where old[name] == nil { old[name] = .absent } }
        for name in old.names {
            let isSame =
                switch old[name] {
                case .absent: object[name] == nil
                case .value(let value): object[name] == value
                case .tooLong, nil: false
                }
            if isSame { old[name] = nil }
        }
        return old
    }
}
