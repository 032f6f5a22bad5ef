internal import ReelBase
internal import ReelCore

// The changes of a stream since a token.
extension SyncClient {
    /// The content of a stream before a turn, and the objects that the turn changes.
    struct ContentBeforeTurn {
        fileprivate var stream: StreamState
        /// The content; nil: it cannot be read.
        fileprivate var content: StreamSnapshot?
        fileprivate var changes: ContentChanges
    }

    /// Returns the present history and content of a stream, and begins to record its changes if it has no history.
    func historyMoment(of opening: StreamOpening) throws(ReelError) -> HistoryMoment {
        let stream = try settledStream(opening)
        guard let store else { throw .closed }
        let known = stream.recorder
        var recorder = if let known { known } else { try beginHistory(of: stream, store) }
        // The caller gets a token for the present end.
        recorder.history.asked = recorder.history.next
        if recorder.history.asked - recorder.storedAsked >= ChangeRecorder.askedMax {
            try commit(store) { changes in
                changes.seal(recorder.history.content, for: StoreKey.history(stream.row))
            }
            recorder.askedIsStored()
        }
        stream.recorder = recorder
        return HistoryMoment(history: recorder.history, row: stream.row, snapshot: try moment(of: opening))
    }

    /// Begins to record the changes of a stream. From then on each commit of the stream records them.
    private func beginHistory(of stream: StreamState, _ store: DeviceStore) throws(ReelError) -> ChangeRecorder {
        let history = HistoryRow(random: random.next())
        try commit(store) { changes in
            // A damaged history may have left rows.
            store.removeHistory(stream.row, &changes)
            changes.seal(history.content, for: StoreKey.history(stream.row))
        }
        // The turn has ended. Without an observer nobody has noted what the turns before it have changed. The changes
        // of a state that this turn has dropped belong to the next turn.
        if !stream.isDirty { stream.unshown = ContentChanges() }
        return ChangeRecorder(history)
    }

    /// Removes the history of a stream, and records its changes no longer.
    func stopRecordingChanges(of opening: StreamOpening) throws(ReelError) {
        let stream = try settledStream(opening)
        guard let store else { throw .closed }
        // A history that cannot be read has rows, too.
        try commit(store) { changes in store.removeHistory(stream.row, &changes) }
        stream.recorder = nil
    }

    private func commit(_ store: DeviceStore, _ body: (inout StorageChanges) -> Void) throws(ReelError) {
        do throws(ReelError) {
            try store.commit(durably: true) { changes throws(ReelError) in body(&changes) }
        } catch {
            fail(error)
            throw error
        }
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

    /// Returns the present content of the streams that may have something to record.
    func contentBeforeTurn(of streams: [StreamState]) -> [ContentBeforeTurn] {
        var contents: [ContentBeforeTurn] = []
        for stream in streams where stream.recorder != nil {
            if stream.unshown.isEmpty {
                stream.recorder?.forgetCauses()
            } else {
                let content = try? moment(of: stream.opening)
                contents.append(ContentBeforeTurn(stream: stream, content: content, changes: stream.unshown))
            }
        }
        return contents
    }

    /// Returns the rows of the histories for this turn. The commit that follows must write them.
    func historyRows(since before: [ContentBeforeTurn], _ store: DeviceStore) throws(ReelError) -> StorageChanges {
        var changes = StorageChanges()
        for old in before {
            let stream = old.stream
            guard var recorder = stream.recorder.take() else { continue }
            let new = try? moment(of: stream.opening)
            let records = recorder.take(old.changes, from: old.content, to: new)
            if records?.isEmpty != true {
                try store.add(records, to: &recorder.history, stream.row, &changes) {
                    UInt32(truncatingIfNeeded: random.next())
                }
            }
            if recorder.history.isOfUse {
                stream.recorder = recorder
            } else {
                store.removeHistory(stream.row, &changes)
            }
        }
        return changes
    }
}
