internal import ReelCore

// The facts about the shown and the confirmed objects that the reduction of the queue depends on.
extension StreamState {
    /// Returns true if the change only writes values that the fields already have, in a complete and confirmed state
    /// that no waiting event of these fields changes.
    func writesNothing(_ change: SyncChange) -> Bool {
        guard sync.isComplete, sync.need != .nextEpoch, change.kind == .update, !change.fields.isEmpty,
            change.operations.isEmpty,
            change.guards.isEmpty, outbox.leaves(fieldsOf: change), let fold = view?.fold
        else { return false }
        let key = Fold.key(model: change.model, id: change.id)
        return fold.holds(key)
            && change.fields.allSatisfy { name, value in
                var bytes: [UInt8] = []
                value.write(to: &bytes)
                return fold.value(of: name, in: key) ?? Array("null".utf8) == bytes
            }
    }

    /// The rules for merging an event that is added now.
    func mergeRules(_ eventMaxBytes: Int) -> Outbox.MergeRules {
        // The queue is being changed while it asks.
        let site = outbox.site
        return Outbox.MergeRules(
            eventMaxBytes: eventMaxBytes,
            sharesOutcome: { self.sharesOutcome($0, $1) },
            sharesTexts: { self.sharesTexts($0, $1, site) }
        )
    }

    /// Returns true if the entry is not expected to be rejected, and stays within the limits of the fold together with
    /// the update. Near such a limit the fold could take the one and reject the other.
    private func sharesOutcome(_ entry: Outbox.Entry, _ update: SyncChange) -> Bool {
        guard !overlay.isRefused(entry.number) else { return false }
        let key = Fold.key(model: update.model, id: update.id)
        let fields = update.fields.count + update.operations.count
        guard overlay.draft.hasRoom(key, bytes: Outbox.mergeMaxBytes, fields: fields) else { return false }
        return update.operations.allSatisfy { name, operation in
            guard case .increment(let amount) = operation, let bytes = overlay.draft.value(of: name, in: key) else {
                return true
            }
            // A sum of three numbers depends on their order unless all sums are exact.
            let number = bytes.withUnsafeBytes { JSONValue(parsing: $0)?.number }
            return number.map { FieldOperation.isCount($0) && FieldOperation.isCount($0 + amount) } ?? true
        }
    }

    /// Returns true if no other device has edited the texts that the update splices since the base of the entry.
    private func sharesTexts(_ entry: Outbox.Entry, _ update: SyncChange, _ site: Site) -> Bool {
        guard let fold = view?.fold else { return false }
        let key = Fold.key(model: update.model, id: update.id)
        return update.operations.allSatisfy { name, operation in
            guard case .splice = operation else { return true }
            return fold.isEdited(name, in: key, onlyBy: site, after: entry.base)
        }
    }
}
