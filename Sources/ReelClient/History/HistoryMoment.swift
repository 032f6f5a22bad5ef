internal import ReelCore

/// A stream and its history of changes at one moment. Safe on any thread.
///
/// A history has up to 8 MiB. Decoding it in the client's actor would hold up all other calls of the device.
struct HistoryMoment: Sendable {
    /// The history, without its rows of records.
    let history: HistoryRow
    /// The number of the stream in the store.
    let row: Int64
    /// The stream, in the storage of the same moment as the history.
    let snapshot: StreamSnapshot

    /// Returns the changes since a token.
    ///
    /// - Throws: A code that begins with `store_` if the storage failed.
    @concurrent func changes(since token: ChangeToken?) async throws(ReelError) -> StreamChanges {
        guard let token, let found = try merged(since: token) else {
            return StreamChanges(token: history.token, isReset: true, objects: [], snapshot: snapshot)
        }
        let objects = try found.changes { (key) throws(ReelError) in try snapshot.object(key) }
        return StreamChanges(token: history.token, isReset: false, objects: objects, snapshot: snapshot)
    }

    private func merged(since token: ChangeToken) throws(ReelError) -> MergedChanges? {
        try history.changes(since: token, ofStream: row, in: snapshot.storage)
    }
}

extension HistoryRow {
    /// Reads the records after a token.
    ///
    /// - Parameters:
    ///   - token: the token.
    ///   - row: the number of the stream in the store.
    ///   - storage: the storage at the moment of this history.
    /// - Returns: The changes; nil if the history does not have everything after the token.
    /// - Throws: A code that begins with `store_` if the storage failed.
    func changes(
        since token: ChangeToken,
        ofStream row: Int64,
        in storage: any StorageSnapshot
    ) throws(ReelError) -> MergedChanges? {
        if token == self.token { return MergedChanges() }
        guard token.history == id, (first...next).contains(token.number) else { return nil }
        if token.number == first, token.tag != firstTag { return nil }
        var merged = MergedChanges()
        var number = token.number
        // The row before the token shows whether the store still has what the token was made from.
        let (start, end) = (StoreKey.history(row, max(first, number - 1)), StoreKey.history(row, next))
        var isKnown = token.number == first
        do throws(ReelError) {
            try storage.forEach(from: start, to: end) { (key, value) throws(ReelError) in
                guard let found = StoreKey.number(in: key, at: 9), let content = SealedValue.open(value, for: key)
                else { throw ReelError.damagedStore(key) }
                var reader = RowReader(content)
                let foundTag = UInt32(truncatingIfNeeded: try reader.number())
                if found == token.number - 1 {
                    isKnown = foundTag == token.tag
                    return isKnown
                }
                guard found == number else { throw ReelError.damagedStore(key) }
                merged.add(try ChangeRecord.records(in: &reader))
                number = found + 1
                return true
            }
        } catch {
            guard error.isDamage else { throw error }
            return nil
        }
        return isKnown && number == next ? merged : nil
    }
}
