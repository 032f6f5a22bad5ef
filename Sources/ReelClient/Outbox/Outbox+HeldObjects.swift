internal import ReelCore

// The queue notes which objects this device has held. An event of such an object never brings the object back after
// another device has deleted it, whatever base the event is sent with.
extension Outbox {
    /// True if the queue has changes of objects that this device has not held yet.
    var hasUnseen: Bool { !unseen.isEmpty }

    /// Notes that the folded state holds these objects.
    mutating func saw(_ names: some Sequence<ObjectName>) {
        let keys = Set(names.map(ObjectKey.init).filter { unseen[$0] != nil })
        guard !keys.isEmpty else { return }
        for number in Set(keys.flatMap { touched[$0] ?? [] }) {
            see(at: index(behind: number - 1)) { keys.contains(ObjectKey($0)) }
        }
    }

    /// Forgets which objects this device has held, because they belong to another deployment.
    mutating func forgetHeld() {
        for index in entries.indices where !entries[index].held.isEmpty {
            put(entries[index].event, held: [], at: index)
        }
    }

    /// Notes all objects of the queue that a new folded state holds.
    mutating func saw(_ fold: Fold) {
        for index in entries.indices { see(at: index) { fold.holds(model: $0.model, id: $0.id) } }
    }

    /// Adapts an entry to the folded state before the entry gets an op. An insert of an object that the state holds
    /// becomes an update, unless a guard requires an absent field. Returns false if the entry was refused, because it
    /// names an object that this device has held and that no longer exists.
    mutating func express(at index: EntryList.Index, over confirmed: Fold) -> Bool {
        let event = entries[index].event
        guard !event.isFiller else { return true }
        let isHeld = event.changes.map { confirmed.holds(model: $0.model, id: $0.id) }
        // An object that cannot be read is not gone.
        guard !confirmed.hasFailedToRead else { return true }
        let isGone = event.changes.indices.map { !isHeld[$0] && entries[index].held.contains($0) }
        if let place = isGone.firstIndex(of: true) {
            let change = event.changes[place]
            let error = ReelError(
                .deleted,
                "found no \(ObjectName(change.model, id: change.id)), which existed when the event was published: "
                    + "it was deleted meanwhile"
            )
            let losesText = event.changes.indices.contains { !isGone[$0] && SyncEvent(event.changes[$0]).namesText }
            refuseGone(at: index, error, losesText: losesText)
            return false
        }
        let changes = event.changes.indices.map { place in
            var change = event.changes[place]
            if change.kind == .insert, isHeld[place], !change.guards.contains(where: { $0.value == Seq.none }) {
                change.kind = .update
            }
            return change
        }
        let held = event.changes.indices.filter { event.changes[$0].kind != .delete && isHeld[$0] }
        if changes != event.changes || held != entries[index].held {
            put(
                event.isBatch ? SyncEvent(batch: changes) : changes.first.map(SyncEvent.init) ?? event,
                held: held,
                at: index
            )
        }
        return true
    }

    /// Adapts the entries that have an op, after a change of the epoch.
    mutating func expressSent(over confirmed: Fold) {
        for index in entries.indices where entries[index].author != nil { _ = express(at: index, over: confirmed) }
    }

    /// Refuses an entry whose object no longer exists. The entry keeps its op, or gets one, if it wrote the text of
    /// another object: later splices may count on that text.
    private mutating func refuseGone(at index: EntryList.Index, _ error: ReelError, losesText: Bool) {
        if entries[index].author == nil {
            guard losesText else { return remove(at: index, .failed(error)) }
            give(EventID(site: site, op: nextOp), at: index)
        }
        refuse(at: index, error)
    }

    private mutating func see(at index: EntryList.Index, _ isSeen: (SyncChange) -> Bool) {
        let (changes, held) = (entries[index].event.changes, entries[index].held)
        let new = changes.indices.filter { place in
            changes[place].kind != .delete && (held.contains(place) || isSeen(changes[place]))
        }
        if new != held { put(entries[index].event, held: new, at: index) }
    }
}
