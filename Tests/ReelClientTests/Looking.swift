import ReelCore

@testable import ReelClient

/// The objects of a stream whose fold has no store: the fold with the queue applied.
extension StreamState {
    func visible(_ model: String, _ id: String) -> SyncObject? {
        let (overlay, key) = (look(), Fold.key(model: model, id: id))
        return read(overlay.covers(key) ? overlay.object(key) : fold?.object(key))
    }

    func visible(_ model: String) -> [SyncObject] {
        let overlay = look()
        let keys = Set((fold?.slots() ?? []).compactMap { fold?.key(ofObject: $0) }).union(overlay.numbers.keys)
        let beginning = Fold.key(model: model, id: "")
        let objects = keys.filter { $0.starts(with: beginning) }.compactMap { key in
            read(overlay.covers(key) ? overlay.object(key) : fold?.object(key))
        }
        return objects.sorted { $0.name.id.utf8.lexicographicallyPrecedes($1.name.id.utf8) }
    }

    func confirmed(_ model: String, _ id: String) -> SyncObject? { read(fold?.object(model: model, id: id)) }

    private func read(_ state: ObjectState?) -> SyncObject? {
        guard let state, !state.isDeleted else { return nil }
        return SyncObject(state, readAt: readPosition)
    }
}

extension DeviceStore {
    /// Opens the file of a store.
    convenience init(path: String) throws(ReelError) {
        try self.init(SQLiteStorage(device: path))
    }

    var hasLostCommits: Bool { (storage as? SQLiteStorage)?.hasLostCommits == true }
}
