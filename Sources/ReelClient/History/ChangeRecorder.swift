internal import ReelCore

/// Records the visible changes of a stream for `SyncStream.changes(since:)`, from the first such call on.
struct ChangeRecorder {
    /// The stored part of the history, without its rows.
    var history: HistoryRow
    /// The objects that may look different since the last commit.
    private(set) var touched: Set<Overlay.Key> = []
    /// Those of them that an event in the log has changed.
    private var folded: Set<Overlay.Key> = []
    /// Those of them that a delta has changed.
    private var loaded: Set<Overlay.Key> = []
    /// True if a snapshot or a large delta has replaced the state since the last commit.
    private(set) var isReplaced = false

    init(_ history: HistoryRow) { self.history = history }

    /// True if a commit may have to record something.
    var hasNews: Bool { isReplaced || !touched.isEmpty }

    /// Notes the changes of a part of a turn.
    ///
    /// - Parameters:
    ///   - touched: the objects that look different.
    ///   - folded: the objects that the fold has changed.
    ///   - isLoaded: true if a delta has changed the fold.
    ///   - isReplaced: true if another state has replaced the fold.
    mutating func note(
        _ touched: Set<Overlay.Key>,
        folded: Set<Overlay.Key>,
        isLoaded: Bool,
        isReplaced: Bool
    ) {
        self.touched.formUnion(touched)
        if isLoaded { loaded.formUnion(folded) } else { self.folded.formUnion(folded) }
        self.isReplaced = self.isReplaced || isReplaced
    }

    /// Returns the records of the turn, and begins the next one. Nil: the changes are not known, or too many.
    mutating func take(from old: StreamSnapshot?, to new: StreamSnapshot?) -> [ChangeRecord]? {
        defer { (touched, folded, loaded, isReplaced) = ([], [], [], false) }
        guard let old, let new else { return nil }
        // Readers have seen a part of a first state while it arrived, and nobody knows which.
        if isReplaced, old.epoch == nil, old.hasStoredObjects { return nil }
        do throws(ReelError) {
            let keys = isReplaced ? try old.keysNotShared(with: new, max: HistoryRow.recordsMax) : touched
            guard let keys, keys.count <= HistoryRow.recordsMax else { return nil }
            var records: [ChangeRecord] = []
            for key in keys.sorted(by: KeyOrder.precedes) {
                let origin: ObjectChange.Origin =
                    isReplaced || loaded.contains(key) ? .load : folded.contains(key) ? .remote : .own
                let record = ChangeRecord(key, from: try old.object(key), to: try new.object(key), origin)
                if let record { records.append(record) }
            }
            return records
        } catch {
            return nil
        }
    }
}
