internal import ReelCore

// The end of one stream on a device: closed, evicted or forgotten.
extension SyncClient {
    /// Closes an open stream. Without effect if it was closed.
    func close(_ opening: StreamOpening) {
        takeEnqueued()
        guard !isClosed, let stream = opened[opening] else { return }
        // What the turn has changed is stored, and calls that wait for that return.
        finishTurn()
        end(stream)
    }

    /// Removes what this device has received of a stream, and keeps the own events that wait. Use it for streams that
    /// are rarely read, so that the file stays small.
    ///
    /// An open stream is closed first, as `SyncStream.close` does. The queue stays, with the device's site in the
    /// stream. Another `open` reads the stream again from a node, and sends the queue. The objects leave the file in
    /// small steps after this call, and then the file shrinks. If the client ends before that, the next one continues.
    ///
    /// Without effect on a stream that the device does not hold.
    ///
    /// - Parameter name: the name of the stream.
    /// - Throws: A `ReelError`: `bad_stream` for a name that is not valid, a code that begins with `store_` if the
    ///   store failed, `closed` once the client is closed.
    public func evict(_ name: String) throws {
        let name = try streamToRemove(name)
        if let stream = opened[name] { end(stream) }
        try remove { store throws(ReelError) in try store.evict(name) }
    }

    /// Removes everything of a stream from this device, also its queue.
    ///
    /// An open stream is closed first, as `SyncStream.close` does. Events that were never sent have the outcome
    /// `superseded`. Events that a node has got, or may have got, have the outcome `unknown`: the stream may have them,
    /// or get them later. Another `open` begins as on a device that has never held the stream.
    ///
    /// The device's site stays in the stream if it has written to it, as with a file that is lost. An operator can
    /// retire it. Without effect on a stream that the device does not hold.
    ///
    /// - Parameters:
    ///   - name: the name of the stream.
    ///   - discardingQueue: true to remove also own events that wait.
    /// - Throws: A `ReelError`: `store_waits` with the number of events if own events wait and may not be removed;
    ///   nothing has changed then. `bad_stream` for a name that is not valid, another code that begins with `store_` if
    ///   the store failed, `closed` once the client is closed.
    public func forget(_ name: String, discardingQueue: Bool = false) throws {
        let name = try streamToRemove(name)
        let stream = opened[name]
        let pendingCount = try stream?.outbox.entries.count ?? store?.queued(name) ?? 0
        let held = LocalStream(id: name.description, pendingCount: pendingCount)
        let call = "forget(_:discardingQueue: true)"
        if !discardingQueue, let error = ReelError(waitingIn: [held], discardedBy: call) { throw error }
        var outcomes: [(publication: PublishHandle, outcome: PublishOutcome)] = []
        if let stream {
            outcomes = stream.takeOutcomesOfForgotten()
            end(stream)
        }
        do throws(ReelError) {
            try remove { store throws(ReelError) in try store.forget(name) }
        } catch {
            for (publication, _) in outcomes { publication.closed(error) }
            throw error
        }
        for (publication, outcome) in outcomes {
            publication.settled(outcome)
            if outcome.isLoss { notify(.notApplied(stream: name.description, publication.event, outcome)) }
        }
    }

    // MARK: Steps

    /// Returns the valid name of a stream that is to be removed, after the changes of the stream are stored.
    private func streamToRemove(_ name: String) throws(ReelError) -> StreamName {
        guard let name = StreamName(name) else {
            throw ReelError(.badStream, "found \(name.debugDescription), expected \(StreamName.rule)")
        }
        takeEnqueued()
        try checkOpen()
        if opened[name] != nil { finishTurn() }
        try checkOpen()
        return name
    }

    /// Removes content of a stream from the store. The client fails with a store that fails, as in every commit.
    private func remove(_ body: (DeviceStore) throws(ReelError) -> Void) throws(ReelError) {
        try checkOpen()
        guard let store else { throw .closed }
        do throws(ReelError) {
            try body(store)
        } catch {
            if !error.isDamage { fail(error) }
            throw error
        }
        planUpkeep()
    }

    /// Ends an open stream: its subscription, its requests and timers, and the calls that wait for it.
    private func end(_ stream: StreamState) {
        if stream.sync.isSubscribed { unsubscribe(stream) }
        step(stream, .closed)
        // A load that ends may have found that the store failed.
        if isClosed { return }
        polls.remove(stream.name)
        opened.remove(stream)
        resources.board.remove(stream.opening)
        content.change { $0[stream.name] = nil }
        stream.end(.streamIsClosed(stream.name.description))
        note(.streamClosed(stream.name))
        arrangePlaces()
        askNextOutcomes()
        // A caller finds the end of the stream in the client's status.
        if isStatusDue { showStatus() }
    }

    /// The error of a call to an opening that has ended.
    func closedError(of opening: StreamOpening) -> ReelError {
        isClosed || isEnding ? .closed : .streamIsClosed(opening.name.description)
    }
}

extension StreamState {
    /// Removes the publications that wait, and returns them with the outcomes that they have when the queue is removed.
    fileprivate func takeOutcomesOfForgotten() -> [(publication: PublishHandle, outcome: PublishOutcome)] {
        let error = ReelError(.closed, "the device has forgotten the stream \(name) after it had sent the event")
        let outcomes = outbox.entries.flatMap { entry in
            (publications[entry.number] ?? []).map {
                ($0, entry.author == nil ? PublishOutcome.superseded : .unknown(error))
            }
        }
        publications = [:]
        return outcomes
    }
}
