extension Fold {
    // MARK: Checks

    /// Returns the reason to reject the part; nil if there is none. Each check covers all names of the part before the
    /// next check begins.
    /// - Parameter lost: the lost texts of the site as they were before the whole event.
    mutating func check(
        _ part: ParsedEvent.Part,
        of event: ParsedEvent,
        _ value: Bytes,
        _ context: PartContext,
        _ lost: LostTexts,
        before undo: Undo
    ) -> ErrorCode? {
        switch (part.kind, context.slot.map { objects[$0].state }) {
        case (.insert, _) where context.base < context.horizon: return .stale
        case (.insert, .tombstone), (.update, .tombstone): return .deleted
        case (.update, nil), (.delete, nil): return .noObject
        default: break
        }
        for condition in event.guards[part.guards] {
            let writer = writer(of: value[condition.name], slot: context.slot, before: undo)
            if writer != condition.seq { return .guard }
        }
        if part.ops.isEmpty { return nil }
        // Only an update has operations, so its object is alive.
        guard let slot = context.slot else { return .noObject }
        for operation in event.operations[part.ops] {
            guard case .splice = operation.kind else { continue }
            let name = value[operation.name]
            if context.base < context.horizon { return .stale }
            if lost.covers(model: value[part.model], id: value[part.id], name: name, base: context.base) {
                return .stale
            }
            let written = objects[slot].field(name)?.written
            if let written, written.seq > context.base, written.site != context.mark.site { return .stale }
        }
        for operation in event.operations[part.ops] {
            if let field = objects[slot].field(value[operation.name]), !operation.kind.fits(field.value) {
                return .type
            }
        }
        for operation in event.operations[part.ops] {
            switch operation.kind {
            case .increment(let step):
                if Self.sum(objects[slot].field(value[operation.name]), step) == nil { return .range }
            case .splice(let triples):
                let count = objects[slot].count(value[operation.name], for: context.viewer)
                if !Self.reaches(event.triples[triples], count) { return .range }
            case .change: break
            }
        }
        return nil
    }

    /// Returns the seq of a field's last writer before the event; −1 if the field was absent.
    private func writer(of name: Bytes, slot: Int?, before undo: Undo) -> Seq {
        guard let slot else { return .none }
        if let before = undo.before(slot) { return before?.field(name)?.writer.seq ?? .none }
        return objects[slot].field(name)?.writer.seq ?? .none
    }

    /// Returns the sum; nil if it is not finite.
    private static func sum(_ field: FoldedField?, _ step: Double) -> Double? {
        var number = 0.0
        if case .plain(let bytes) = field?.value {
            number = bytes.withUnsafeBytes { CanonicalNumber.value(of: $0) } ?? 0
        }
        let sum = number + step
        return sum.isFinite ? sum : nil
    }

    /// True if all offsets are inside a text of `count` elements. Each triple sees the effect of the triples before it.
    private static func reaches(_ triples: ArraySlice<ParsedEvent.Triple>, _ count: Int) -> Bool {
        var count = Int64(count)
        for triple in triples {
            if triple.offset + triple.removed > count { return false }
            count += triple.scalars - triple.removed
        }
        return true
    }

    // MARK: Effects

    /// Applies a part that has passed its checks. The object can still become too large.
    /// - Parameters:
    ///   - undo: receives the object as it was, if `keepsUndo` is true.
    ///   - set: the set that the event changed last.
    mutating func apply(
        _ part: ParsedEvent.Part,
        of event: ParsedEvent,
        _ value: Bytes,
        _ context: PartContext,
        undo: inout Undo,
        keepsUndo: Bool,
        set: inout CanonicalSet
    ) -> ErrorCode? {
        let slot: Int
        if let known = context.slot {
            slot = known
            if objects[slot].state == .tombstone { return nil }
            touch(object: slot)
            if keepsUndo { undo.save(objects[slot], at: slot) }
        } else {
            slot = makeObject(model: value[part.model], id: value[part.id], seq: context.mark.seq)
            if keepsUndo { undo.save(nil, at: slot) }
        }
        if part.kind == .delete {
            objects[slot].bury(at: context.mark.seq)
            agingObjects.push(slot, at: context.mark.seq)
            return nil
        }
        objects[slot].seq = context.mark.seq
        for field in event.fields[part.fields] {
            if field.removes {
                objects[slot].remove(value[field.name])
            } else {
                objects[slot].write(value[field.name], value[field.value], by: context.mark)
            }
        }
        for operation in event.operations[part.ops] {
            apply(operation, of: event, value, context, slot: slot, set: &set)
        }
        let isTooLarge = objects[slot].fields.count > Limits.fields || objects[slot].size > Limits.object
        return isTooLarge ? .tooLarge : nil
    }

    private mutating func apply(
        _ operation: ParsedEvent.Operation,
        of event: ParsedEvent,
        _ value: Bytes,
        _ context: PartContext,
        slot: Int,
        set: inout CanonicalSet
    ) {
        let name = value[operation.name]
        switch operation.kind {
        case .increment(let step):
            guard let sum = Self.sum(objects[slot].field(name), step) else { return }
            CanonicalNumber.withText(of: sum) { objects[slot].write(name, $0, by: context.mark) }
        case .change(let add, let remove):
            set.read(objects[slot].field(name)?.value)
            set.change(adding: event.elements[add], removing: event.elements[remove], value)
            set.bytes.withUnsafeBytes { objects[slot].write(name, $0, by: context.mark) }
        case .splice(let triples):
            objects[slot].splice(name, by: context.mark) { text in
                for triple in event.triples[triples] {
                    text.splice(
                        at: Int(triple.offset),
                        removing: Int(triple.removed),
                        inserting: value[triple.text],
                        scalars: Int(triple.scalars),
                        mark: context.mark,
                        viewer: context.viewer,
                        horizon: context.horizon
                    )
                }
            }
            if objects[slot].queued <= marks.last ?? .none {
                objects[slot].queued = context.mark.seq
                agingObjects.push(slot, at: context.mark.seq)
            }
        }
    }
}

extension ParsedEvent.Operation.Kind {
    /// True if the operation is valid for the field's current value.
    func fits(_ value: FieldValue) -> Bool {
        guard case .plain(let bytes) = value, let first = bytes.first else {
            if case .splice = self { return true }
            return false
        }
        return switch self {
        case .increment: first == ASCII.minus || ASCII.digit(first) != nil
        case .change: first == ASCII.openBracket
        case .splice: first == ASCII.quote
        }
    }
}
