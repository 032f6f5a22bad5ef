internal import ReelCore

// What the queue knows of the objects that it names: what it makes or changes of an object that this device has held
// never brings the object back, whatever base it is sent with.
extension Outbox {
    /// True if the queue makes or changes objects that this device has not held yet.
    var hasUnseen: Bool { !unseen.isEmpty }

    /// The folded state holds these objects: from now on they are known.
    mutating func saw(_ names: some Sequence<ObjectName>) {
        let keys = Set(names.map(ObjectKey.init).filter { unseen[$0] != nil })
        guard !keys.isEmpty else { return }
        for number in Set(keys.flatMap { touched[$0] ?? [] }) {
            see(at: index(behind: number - 1)) { keys.contains(ObjectKey($0)) }
        }
    }

    /// Forgets which objects this device has held: they were of another deployment.
    mutating func forgetHeld() {
        for index in entries.indices where !entries[index].knew.isEmpty {
            put(entries[index].event, knew: [], at: index)
        }
    }

    /// The folded state is another one: what it holds is known from now on.
    mutating func saw(_ fold: Fold) {
        for index in entries.indices { see(at: index) { fold.holds(model: $0.model, id: $0.id) } }
    }

    /// Puts an entry into the words for a log whose folded state is `confirmed`, before it gets an op: an insert of an
    /// object that is there becomes an update, unless it asks for an absent field. False: the entry was refused,
    /// because it names an object that this device has held and that is there no more.
    mutating func express(at index: Int, over confirmed: Fold) -> Bool {
        let event = entries[index].event
        guard !event.isFiller else { return true }
        let isHeld = event.changes.map { confirmed.holds(model: $0.model, id: $0.id) }
        let isGone = event.changes.indices.map { !isHeld[$0] && entries[index].knew.contains($0) }
        if let place = isGone.firstIndex(of: true) {
            let change = event.changes[place]
            let error = ReelError(
                .deleted,
                "found no \(ObjectName(change.model, change.id)), which was there when the event was published: "
                    + "it was deleted meanwhile"
            )
            let losesText = event.changes.indices.contains { !isGone[$0] && event.changes[$0].namesText }
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
        let knew = event.changes.indices.filter { event.changes[$0].kind != .delete && isHeld[$0] }
        if changes != event.changes || knew != entries[index].knew {
            put(event.isBatch ? Event(batch: changes) : changes.first.map(Event.init) ?? event, knew: knew, at: index)
        }
        return true
    }

    /// Does the same for what has an op and goes into another log with it.
    mutating func expressSent(over confirmed: Fold) {
        for index in entries.indices where entries[index].author != nil { _ = express(at: index, over: confirmed) }
    }

    /// Refuses an entry. Its op must be filled if it has one; and where it has written a text of another object, what
    /// was made after it may count on that.
    private mutating func refuseGone(at index: Int, _ error: ReelError, losesText: Bool) {
        if entries[index].author == nil {
            guard losesText else { return remove(at: index, .refused(error)) }
            give(Event.Author(site: site, op: nextOp), at: index)
        }
        refuse(at: index, error)
    }

    private mutating func see(at index: Int, _ isSeen: (Change) -> Bool) {
        let (changes, knew) = (entries[index].event.changes, entries[index].knew)
        let new = changes.indices.filter { place in
            changes[place].kind != .delete && (knew.contains(place) || isSeen(changes[place]))
        }
        if new != knew { put(entries[index].event, knew: new, at: index) }
    }
}

extension Change {
    /// Later splices of its author may count on text that it writes or removes.
    fileprivate var namesText: Bool {
        fields.contains { $0.value.string != nil || $0.value == .null }
            || operations.contains { if case .splice = $0.value { true } else { false } }
    }
}
