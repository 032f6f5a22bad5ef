/// The predicted result of events that are not in the log yet: objects of a fold after those events. The draft looks at
/// objects only. Which op of which site is consumed is decided when the events are in the log.
///
/// A value without I/O. It holds the objects that were added by `reset`, and shares their storage with the fold.
package struct FoldDraft: Sendable {
    var fold: Fold

    /// A draft without any object.
    package init(of stream: StreamName) {
        fold = Fold(stream: stream, partition: 0, epoch: Epoch(0))
    }

    /// The horizon of the confirmed fold. A splice with a base below this seq is stale.
    package var horizon: Seq { fold.horizon }

    /// Takes over the horizon of the confirmed fold; nil means that there is none.
    package mutating func takeHorizon(of confirmed: Fold?) {
        fold.marks = confirmed?.marks ?? []
    }

    /// Replaces an object, and all predictions for it, with its state in `confirmed`. Removes the object if `confirmed`
    /// does not contain it.
    /// - Parameter key: a key as returned by `Fold.key(ofObject:)`.
    package mutating func reset(_ key: [UInt8], to confirmed: Fold?) {
        place(confirmed?.folded(key), key)
    }

    /// Replaces an object with this state of it; nil removes it.
    mutating func place(_ object: FoldedObject?, _ key: [UInt8]) {
        switch (fold.slot(key), object) {
        case (let slot?, let object?): fold.objects[slot] = object
        case (let slot?, nil): fold.objects.remove(slot)
        case (nil, let object?):
            let slot = Fold.split(key) { fold.objects.insert(model: $0, id: $1, seq: object.seq) }
            fold.objects[slot] = object
        case (nil, nil): break
        }
    }

    /// The stream of the draft's events.
    package var stream: StreamName { fold.stream }

    /// Replaces an object with its state in another draft.
    package mutating func reset(_ key: [UInt8], to other: FoldDraft) { reset(key, to: other.fold) }

    /// True if the object or its tombstone exists in the draft.
    package func knows(_ key: [UInt8]) -> Bool { fold.knows(key) }

    /// True if the object exists and is not deleted.
    package func holds(_ key: [UInt8]) -> Bool { fold.holds(key) }

    /// Returns the object; nil if it does not exist or is deleted.
    func livingObject(model: Bytes, id: Bytes) -> FoldedObject? {
        guard let slot = fold.objects.find(model: model, id: id) else { return nil }
        return fold.objects[slot].state == .alive ? fold.objects[slot] : nil
    }

    /// Applies an event to the draft as if it were at `seq`. All objects of the event must have been added before.
    ///
    /// - Parameters:
    ///   - event: the event.
    ///   - value: the bytes that `event` was parsed from.
    ///   - seq: the assumed seq of the event.
    ///   - lost: the lost texts of the event's site.
    /// - Returns: the reason if the event has no effect, otherwise nil.
    package mutating func lay(_ event: ParsedEvent, _ value: Bytes, seq: Seq, lost: LostTexts) -> ErrorCode? {
        defer { fold.dropBookkeeping() }
        return fold.change(event, value, seq: seq, lost: lost)
    }

    /// Returns the current object or tombstone; nil if there is neither.
    func object(for key: [UInt8]) -> FoldedObject? { fold.folded(key) }

    /// Returns the current object or tombstone; nil if there is neither.
    package func object(_ key: [UInt8]) -> ObjectState? { fold.object(key) }
}
