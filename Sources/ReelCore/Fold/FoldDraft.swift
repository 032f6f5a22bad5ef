/// Objects of a fold with events laid over them that stand in no log yet: what the fold would make of them if they came
/// next. Only objects are looked at; which op of which site is consumed is settled when the events come.
///
/// A value without I/O. It holds those objects that were put in, and shares their storage with the fold's.
package struct FoldDraft: Sendable {
    private var fold: Fold

    /// A draft without any object.
    package init(of stream: StreamName) {
        fold = Fold(stream: stream, partition: 0, epoch: Epoch(0))
    }

    /// Below this seq no splice may count on what its author saw: that of the fold which lies below.
    package var horizon: Seq { fold.horizon }

    /// Takes over what is history for nobody in the fold that lies below; nil: there is none.
    package mutating func takeHorizon(of confirmed: Fold?) {
        fold.marks = confirmed?.marks ?? []
    }

    /// Puts an object in as `confirmed` has it, in place of what is laid over it; or out, where that has none. `key`:
    /// as `Fold.key(ofObject:)` gives it.
    package mutating func reset(_ key: [UInt8], to confirmed: Fold?) {
        let object = confirmed?.slot(key).flatMap { confirmed?.objects[$0] }
        switch (fold.slot(key), object) {
        case (let slot?, let object?): fold.objects[slot] = object
        case (let slot?, nil): fold.objects.remove(slot)
        case (nil, let object?):
            let slot = Fold.split(key) { fold.objects.insert(model: $0, id: $1, seq: object.seq) }
            fold.objects[slot] = object
        case (nil, nil): break
        }
    }

    /// The stream of its events.
    package var stream: StreamName { fold.stream }

    /// Puts an object in as another draft has it.
    package mutating func reset(_ key: [UInt8], to other: FoldDraft) { reset(key, to: other.fold) }

    /// True if the object or its tombstone is there.
    package func knows(_ key: [UInt8]) -> Bool { fold.knows(key) }

    /// True if the object is there and was not deleted.
    package func holds(_ key: [UInt8]) -> Bool { fold.holds(key) }

    /// The object, as long as it was not deleted.
    func livingObject(model: Bytes, id: Bytes) -> FoldedObject? {
        guard let slot = fold.objects.find(model: model, id: id) else { return nil }
        return fold.objects[slot].state == .alive ? fold.objects[slot] : nil
    }

    /// Lays an event over its objects, which must have been put in, as if it stood at `seq`; `value` is what the event
    /// was taken apart from. `lost`: the lost texts of its site. The code says why it has no effect.
    package mutating func lay(_ event: ParsedEvent, _ value: Bytes, seq: Seq, lost: LostTexts) -> ErrorCode? {
        defer { fold.dropBookkeeping() }
        return fold.change(event, value, seq: seq, lost: lost)
    }

    /// The object or tombstone as it now is; nil: neither is there.
    package func object(_ key: [UInt8]) -> ObjectState? { fold.object(key) }
}
