internal import ReelCore

// The histories of visible changes, for the streams whose changes an app asks for.
extension DeviceStore {
    /// Returns the history of a stream; nil if there is none, or if it is damaged.
    func history(_ row: Int64) throws(ReelError) -> HistoryRow? {
        do throws(ReelError) {
            return try storage.snapshot().sealed(StoreKey.history(row)) { (content) throws(ReelError) in
                try HistoryRow(content)
            }
        } catch {
            guard error.isDamage else { throw error }
            return nil
        }
    }

    /// Adds records to a history, and removes its oldest rows beyond the limits. Call it inside `commit`.
    ///
    /// - Parameters:
    ///   - records: the records of a turn; nil: they are not known, so that the history begins after them.
    ///   - history: the history, which gets the rows.
    ///   - row: the number of the stream.
    ///   - changes: the changes of the commit.
    ///   - tag: returns a random number for each row.
    /// - Throws: A code that begins with `store_` if the oldest rows cannot be read.
    func add(
        _ records: [ChangeRecord]?,
        to history: inout HistoryRow,
        _ row: Int64,
        _ changes: inout StorageChanges,
        tag: () -> UInt32
    ) throws(ReelError) {
        let rows = records.map(Self.rows)
        // The rows of one commit cannot be removed before they are stored.
        if let rows, rows.reduce(0, { $0 + $1.content.count }) <= HistoryRow.bytesMax {
            for (content, count) in rows {
                history.nextTag = tag()
                var tagged = RowWriter([])
                tagged.write(Int64(history.nextTag))
                let bytes = tagged.bytes + content
                changes.seal(bytes, for: StoreKey.history(row, history.next))
                history.next += 1
                history.records += count
                history.bytes += bytes.count
            }
            if history.records > HistoryRow.recordsMax || history.bytes > HistoryRow.bytesMax {
                do throws(ReelError) {
                    try shorten(&history, row, &changes)
                } catch {
                    guard error.isDamage else { throw error }
                    cut(&history, row, tag: tag(), &changes)
                }
            }
        } else {
            cut(&history, row, tag: tag(), &changes)
        }
        changes.seal(history.content, for: StoreKey.history(row))
    }

    /// Removes a history with all its rows.
    func removeHistory(_ row: Int64, _ changes: inout StorageChanges) {
        let start = StoreKey.history(row)
        changes.removeRange(from: start, to: StoreKey.end(of: start))
    }

    /// Returns the contents of the rows for these records, without their tags, and the number of records in each.
    private static func rows(of records: [ChangeRecord]) -> [(content: [UInt8], count: Int)] {
        stride(from: 0, to: records.count, by: HistoryRow.recordsPerRow).map { start in
            let part = records[start..<min(records.count, start + HistoryRow.recordsPerRow)]
            return (ChangeRecord.content(of: part), part.count)
        }
    }

    /// Removes all rows. Tokens that the history has given are too old then.
    private func cut(_ history: inout HistoryRow, _ row: Int64, tag: UInt32, _ changes: inout StorageChanges) {
        history.next += 1
        changes.removeRange(from: StoreKey.history(row, 0), to: StoreKey.history(row, history.next))
        history.nextTag = tag
        (history.first, history.firstTag) = (history.next, history.nextTag)
        (history.records, history.bytes) = (0, 0)
    }

    /// Removes the oldest rows, until three quarters of the limits are left.
    private func shorten(_ history: inout HistoryRow, _ row: Int64, _ changes: inout StorageChanges) throws(ReelError) {
        var (first, tag, records, bytes) = (history.first, history.firstTag, history.records, history.bytes)
        let (start, end) = (StoreKey.history(row, history.first), StoreKey.history(row, history.next))
        try storage.snapshot().forEach(from: start, to: end) { (key, value) throws(ReelError) in
            guard let number = StoreKey.number(in: key, at: 9), let content = SealedValue.open(value, for: key) else {
                throw ReelError.damagedStore(key)
            }
            var reader = RowReader(content)
            tag = UInt32(truncatingIfNeeded: try reader.number())
            records -= try reader.count()
            bytes -= content.count
            first = number + 1
            return records > HistoryRow.recordsMax / 4 * 3 || bytes > HistoryRow.bytesMax / 4 * 3
        }
        changes.removeRange(from: start, to: StoreKey.history(row, first))
        (history.first, history.firstTag) = (first, tag)
        (history.records, history.bytes) = (max(0, records), max(0, bytes))
    }
}
