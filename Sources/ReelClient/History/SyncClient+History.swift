internal import ReelCore

// The changes of a stream since a token.
extension SyncClient {
    func changes(since token: ChangeToken?, of opening: StreamOpening) throws(ReelError) -> StreamChanges {
        let stream = try settledStream(opening)
        guard let store else { throw .closed }
        let known = stream.recorder?.history
        let history = if let known { known } else { try beginHistory(of: stream, store) }
        let now = try moment(of: opening)
        guard let token, let found = try store.changes(since: token, history, stream.row) else {
            return StreamChanges(token: history.token, isReset: true, objects: [], snapshot: now)
        }
        let objects = try found.changes { (key) throws(ReelError) in try now.object(key) }
        return StreamChanges(token: history.token, isReset: false, objects: objects, snapshot: now)
    }

    /// Begins to record the changes of a stream. From then on each commit of the stream records them.
    private func beginHistory(of stream: StreamState, _ store: DeviceStore) throws(ReelError) -> HistoryRow {
        let history = HistoryRow(random: random.next())
        do throws(ReelError) {
            try store.commit(durably: true) { changes throws(ReelError) in
                // A damaged history may have left rows.
                let start = StoreKey.history(stream.row)
                changes.removeRange(from: start, to: StoreKey.end(of: start))
                changes.seal(history.content, for: start)
            }
        } catch {
            fail(error)
            throw error
        }
        stream.recorder = ChangeRecorder(history)
        return history
    }

    /// Returns what readers of a stream see now.
    private func moment(of opening: StreamOpening) throws(ReelError) -> StreamSnapshot {
        let moment = try content.moment(of: [opening]) { [weak self] name, layers, error in
            Task { [weak self] in await self?.foundDamage(in: name, layers, error) }
        }
        guard let first = moment.first else { throw closedError(of: opening) }
        return first
    }

    // MARK: Recording

    /// Returns the streams that have something to record, with their present content; nil: it cannot be read.
    func contentBeforeTurn(of streams: [StreamState]) -> [(stream: StreamState, content: StreamSnapshot?)] {
        streams.filter { $0.recorder?.hasNews == true }.map { ($0, try? moment(of: $0.opening)) }
    }

    /// Returns the rows of the histories for this turn. The commit that follows must write them.
    func historyRows(
        since before: [(stream: StreamState, content: StreamSnapshot?)],
        _ store: DeviceStore
    ) throws(ReelError) -> StorageChanges {
        var changes = StorageChanges()
        for (stream, old) in before {
            guard var recorder = stream.recorder.take() else { continue }
            let records = recorder.take(from: old, to: try? moment(of: stream.opening))
            if records?.isEmpty != true {
                try store.add(records, to: &recorder.history, stream.row, &changes) {
                    UInt32(truncatingIfNeeded: random.next())
                }
            }
            stream.recorder = recorder
        }
        return changes
    }
}
