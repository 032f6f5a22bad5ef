internal import ReelCore

// The end of a turn: the changes of the turn are committed together, then sent, then reported to the app.
extension SyncClient {
    /// The maximum size of a publish frame in bytes, even if a node would accept more.
    static let parcelBytes = 64 << 10
    /// The horizon may rise by this number of marks while an event is in transit. An insert whose base is then below it
    /// would be rejected, so an older base is replaced when the event is sent.
    static let marksInTransit = Limits.marks / 2
    /// The bytes of a publish frame besides its events. They include the longest stream name, and the digits by which
    /// large ops and bases lengthen an event.
    static let frameRoom = 1_024
    /// The largest event that the device takes, in bytes. Nodes accept frames of 1 MiB, and would end the connection
    /// for a larger one each time that it arrives. The last node that sent `welcome` may have a smaller limit.
    var eventBytes: Int { max(1, min(Limits.value, eventLimit ?? .max) - Self.frameRoom) }

    func markDirty(_ stream: StreamState) {
        stream.isDirty = true
        changedStatus(stream)
        scheduleTurn()
    }

    func scheduleTurn() {
        guard !isTurnScheduled, !isClosed else { return }
        isTurnScheduled = true
        transport.onBatchEnd { [weak self] in self?.assumeIsolated { $0.finishTurn() } }
    }

    func finishTurn() {
        isTurnScheduled = false
        guard !isClosed else { return }
        let dirty = opened.values.filter(\.isDirty)
        var parcels: [(StreamState, Outbox.PublishBatch)] = []
        for stream in dirty {
            repeat {
                stream.placeReleased()
                parcels += nextBatch(stream).map { (stream, $0) }
                // Handing over an entry may refuse it, and other entries may have waited for that.
            } while stream.view != nil && !stream.outbox.released.isEmpty
            if stream.sync.isPolled { step(stream, .turnEnded) }
        }
        for stream in dirty { stream.follow() }
        // Earlier than the commit, which marks a stream whose state it drops.
        for stream in dirty { stream.isDirty = false }
        if let store {
            do throws(ReelError) {
                try commit(dirty, to: store)
            } catch {
                return fail(error)
            }
        }
        // A state that the commit has found damaged was dropped. Its events are sent again over the next one.
        for (stream, parcel) in parcels where parcel.ref == stream.outbox.generation {
            let publish = ClientFrame.Publish(
                stream: stream.name,
                epoch: stream.view?.fold.epoch,
                events: parcel.events
            )
            send(ClientFrame(.publish(publish), ref: Array(String(parcel.ref).utf8)))
            awaitAnswer(stream)
        }
        // A task that learns of the turn then finds it in the status.
        for stream in dirty where stream.outbox.entries.isEmpty { note(.emptied(stream.name)) }
        showStatuses()
        for stream in dirty { tell(stream) }
        for stream in opened.values where stream.isStateDue && stream.view != nil && !isLoadingDelta(stream) {
            markDirty(stream)
        }
        showStatuses()
    }

    private func nextBatch(_ stream: StreamState) -> [Outbox.PublishBatch] {
        // A poll shows if an event that waits may be sent.
        if stream.sync.isPolled, !stream.sync.maySend(at: stream.seq), let fromMs = stream.outbox.nextSendMs {
            step(stream, .queued(fromMs: fromMs))
        }
        guard let limits = link?.welcome?.limits, let fold = stream.view?.fold, stream.sync.maySend(at: fold.seq),
            maySend(stream, fold)
        else { return [] }
        let window = Outbox.Window(
            events: max(1, limits.batch),
            bytes: max(1, min(limits.frame - Self.frameRoom, Self.parcelBytes)),
            event: max(1, limits.frame - Self.frameRoom)
        )
        var parcels: [Outbox.PublishBatch] = []
        while let parcel = stream.outbox.nextBatch(
            window,
            base: fold.seq,
            // A site must not begin with an event that was made before sites were retired.
            horizon: max(fold.horizon(afterMarks: Self.marksInTransit), fold.retired),
            confirmed: fold,
            nowMs: transport.nowMs
        ) {
            parcels.append(parcel)
        }
        stream.sendTimer?.cancel()
        stream.sendTimer = nil
        if let next = stream.outbox.nextSendMs, next > transport.nowMs {
            let name = stream.name
            stream.sendTimer = after(next - transport.nowMs) { client in
                if let stream = client.opened[name] { client.markDirty(stream) }
            }
        }
        return parcels
    }

    // MARK: The app

    /// Reports the results of the turn to the readers. Changes come first: a task that learns an event's outcome then
    /// finds its effect in the changes.
    private func tell(_ stream: StreamState) {
        tellChanges(stream)
        for commit in stream.commits { commit(nil) }
        stream.commits = []
        storedEnqueued(stream)
        var isStuck = false
        for notice in stream.outbox.takeNotices() {
            switch notice {
            case .acked(let number, let seq): for item in stream.publications[number] ?? [] { item.acked(seq) }
            case .settled(let number, let outcome):
                if outcome.isConsumed { note(.consumed(stream.name)) }
                settle(number, outcome, stream)
            case .newSite(let was, let now):
                notify(.newSite(stream: stream.name.description, was: was.description, now: now.description))
            case .leftSite(let left):
                notify(
                    .leftSite(
                        stream: stream.name.description,
                        site: left.site.description,
                        consumed: left.consumed,
                        moved: left.moved,
                        unknown: left.unknown
                    )
                )
            case .held(let error):
                note(.held(stream.name, error))
                notify(
                    .publishingPaused(
                        stream: stream.name.description,
                        reason: "\(error.code.rawValue): \(error.message)"
                    )
                )
            case .stuck: isStuck = true
            }
        }
        askOutcomes(stream)
        resumeFlushes(stream)
        let seq = stream.seq
        for waiter in stream.waiters where waiter.seq <= seq { waiter.continuation.resume() }
        stream.waiters.removeAll { $0.seq <= seq }
        if isStuck, let number = link?.number {
            lost(number, "the node waits for an event that was consumed meanwhile")
        }
    }

    private func tellChanges(_ stream: StreamState) {
        let (feeds, news) = (stream.feeds, stream.news)
        var batch = stream.batch ?? ObjectChangeBatch(seq: stream.seq)
        stream.news = []
        stream.batch = nil
        if feeds.isEmpty { return }
        batch.seq = stream.seq
        for key in news { batch.objects.insert(ObjectName(key)) }
        guard batch.isReset || !batch.objects.isEmpty || !batch.seen.isEmpty else { return }
        feeds.add(batch)
    }
}
