internal import ReelCore

/// Records the visible changes of a stream for `SyncStream.changes(since:)`, from the first such call on.
struct ChangeRecorder {
    /// The stored part of the history, without its rows.
    var history: HistoryRow {
        didSet { if history.next != oldValue.next { storedAsked = history.asked } }
    }
    /// The number in the newest token that the store knows. It is too low by at most `askedMax` after a crash.
    private(set) var storedAsked: Int64
    /// The causes of changes since the last commit, by object. An object that looks the same may have some.
    private var causes: [Overlay.Key: ObjectChange.Origin] = [:]

    /// The maximum number of rows by which the stored number of the newest token may be too low.
    static let askedMax: Int64 = 256

    init(_ history: HistoryRow) { (self.history, storedAsked) = (history, history.asked) }

    /// Records that the store knows the newest token.
    mutating func askedIsStored() { storedAsked = history.asked }

    /// Notes a cause of changes in this turn.
    mutating func note(_ objects: some Sequence<Overlay.Key>, _ cause: ObjectChange.Origin) {
        for key in objects { causes[key, default: []].formUnion(cause) }
    }

    /// Forgets the causes of the turn, which has no visible effect.
    mutating func forgetCauses() { causes = [:] }

    /// Returns the records of the turn, and begins the next one.
    ///
    /// - Parameters:
    ///   - changes: the objects that may look different since the last commit.
    ///   - old: the stream at the last commit; nil: it cannot be read.
    ///   - new: the stream now; nil: it cannot be read.
    /// - Returns: The records; nil: the changes are not known, or too many.
    mutating func take(
        _ changes: ContentChanges,
        from old: StreamSnapshot?,
        to new: StreamSnapshot?
    ) -> [ChangeRecord]? {
        defer { causes = [:] }
        guard let old, let new else { return nil }
        // Readers have seen a part of a first state while it arrived, and nobody knows which.
        if changes.isReset, old.epoch == nil, old.hasStoredObjects { return nil }
        do throws(ReelError) {
            let keys = changes.isReset ? try old.keysNotShared(with: new, max: HistoryRow.recordsMax) : changes.keys
            guard let keys, keys.count <= HistoryRow.recordsMax else { return nil }
            var records: [ChangeRecord] = []
            for key in keys.sorted(by: KeyOrder.precedes) {
                let (former, present) = (try old.object(key), try new.object(key))
                guard var record = ChangeRecord(key, from: former, to: present, causes[key] ?? []) else { continue }
                if changes.isReset {
                    let hasSame = try old.confirmed.hasSame(key, as: new.confirmed)
                    if !hasSame || record.origin.isEmpty { record.origin.insert(.load) }
                }
                // Nothing has changed the object, so an own event that waits has another effect than before.
                if record.origin.isEmpty { record.origin = .withdrawn }
                records.append(record)
            }
            return records
        } catch {
            return nil
        }
    }
}

extension StreamSnapshot {
    /// Returns true if the object looks the same at another moment.
    fileprivate func hasSame(_ key: Overlay.Key, as other: StreamSnapshot) throws(ReelError) -> Bool {
        ChangeRecord(key, from: try object(key), to: try other.object(key), []) == nil
    }
}
