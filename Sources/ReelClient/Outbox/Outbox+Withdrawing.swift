internal import ReelCore

// An app takes back an event that was never sent.
extension Outbox {
    /// Removes an entry without an op, which is then settled as `superseded`. Refuses the later splices that may count
    /// on its text.
    ///
    /// Throws if there is no such entry, or if it has its op.
    mutating func withdraw(_ number: Int64) throws(WithdrawalRefused) {
        guard let index = index(of: number), !entries[index].event.isInternal else { throw .notQueued(number) }
        let entry = entries[index]
        if entry.author != nil { throw .sent(number) }
        let lost = TextFields(entry.event)
        remove(at: index, .superseded)
        if !lost.isEmpty { refuseSplices(countingOn: lost, after: number) }
    }

    /// Refuses the entries after `number` whose splices may count on these texts. A refused entry loses its own texts,
    /// and a plain write of a text ends the loss.
    private mutating func refuseSplices(countingOn lost: TextFields, after number: Int64) {
        var (lost, refused) = (lost, Set<Int64>())
        for entry in entries[index(behind: number)...] where entry.author == nil {
            if lost.isEmpty { break }
            if lost.areSpliced(by: entry.event) {
                refused.insert(entry.number)
                lost.formUnion(TextFields(entry.event))
            } else {
                lost.subtractWritten(by: entry.event)
            }
        }
        guard !refused.isEmpty else { return }
        let error = ReelError(.stale, "it counts on a text of an event that was withdrawn")
        removeAll { refused.contains($0.number) ? .failed(error) : nil }
    }
}

/// Names of fields that hold texts.
private struct TextFields {
    private struct Field: Hashable {
        var object: ObjectKey
        var name: [UInt8]

        init(_ change: SyncChange, _ name: String) {
            object = ObjectKey(change)
            self.name = Array(name.utf8)
        }
    }

    private var fields: Set<Field>

    /// The fields that the event names as text.
    init(_ event: SyncEvent) {
        fields = Set(event.textFields.flatMap { change in change.fields.map { Field(change, $0.name) } })
    }

    var isEmpty: Bool { fields.isEmpty }

    mutating func formUnion(_ other: TextFields) { fields.formUnion(other.fields) }

    /// Returns true if the event splices one of the fields.
    func areSpliced(by event: SyncEvent) -> Bool {
        event.changes.contains { change in
            change.operations.contains { name, operation in
                if case .splice = operation { fields.contains(Field(change, name)) } else { false }
            }
        }
    }

    /// Removes the fields that the event writes plainly.
    mutating func subtractWritten(by event: SyncEvent) {
        for change in event.changes {
            for name in change.fields.names { fields.remove(Field(change, name)) }
        }
    }
}
