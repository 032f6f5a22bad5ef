internal import ReelBase
internal import ReelCore

// The client's use of its store: what a turn changes is committed together.
extension SyncClient {
    /// The number of events after the stored state, and of their bytes, from which the changed rows of the state are
    /// written. Until then the events in the store replace the rows.
    static let (eventsBehindStateMax, bytesBehindStateMax) = (4_096, 1 << 20)

    /// Commits the changes of streams, and shows them to readers.
    func commit(_ streams: [StreamState], to store: DeviceStore) throws(ReelError) {
        for stream in streams { try healIfDamaged(stream) }
        // Received data can be received again. Promises to the app and given ops must not be lost; they include that a
        // delete has cancelled an insert.
        let isPromise = streams.contains { stream in
            !stream.commits.isEmpty
                || stream.unwrittenWrites.contains { if case .remove = $0 { false } else { true } }
        }
        noteUpToDate(streams, wallMs: heardMs)
        let before = contentBeforeTurn(of: streams)
        show(streams, beforeCommit: true)
        let histories = try historyRows(since: before, store)
        var (states, written) = (StorageChanges(), [StreamState]())
        var damaged: [(stream: StreamState, error: ReelError)] = []
        for stream in streams where mustWriteState(stream) {
            do throws(ReelError) {
                states.append(try changedRows(of: stream, in: store))
                written.append(stream)
            } catch {
                guard error.isDamage else { throw error }
                damaged.append((stream, error))
            }
        }
        try store.commit(durably: isPromise) { changes throws(ReelError) in
            if !logIsWritten {
                store.changeClient(&changes) {
                    $0.logNumber = logNumber
                    $0.deployment = deployment
                }
            }
            for stream in streams {
                store.write(stream.unwrittenWrites, of: stream.outbox, stream.name, stream.row, &changes)
                if stream.unwrittenEpoch { store.dropEvents(stream.row, &changes) }
                for event in stream.unwritten { store.write(event: event.value, seq: event.seq, stream.row, &changes) }
            }
            changes.append(states)
            changes.append(histories)
            for stream in streams { stream.position.map { store.write($0, stream.row, &changes) } }
        }
        logIsWritten = true
        for stream in streams { stream.storedUpToDateMs = stream.upToDateMs }
        for stream in streams { (stream.unwrittenWrites, stream.unwritten) = ([], []) }
        for stream in written { stateIsWritten(stream, store) }
        show(streams, beforeCommit: false)
        // The commit has stored the queue. The rest of a damaged state is read again from a node.
        for (stream, error) in damaged {
            try dropState(of: stream, error)
            markDirty(stream)
        }
        turns += 1
        for stream in streams { stream.lastTurn = turns }
        boundCache(of: streams)
        if !store.unusedGenerations.isEmpty || streams.contains(where: \.isLayered) { planUpkeep() }
    }

    /// Returns the changed rows of a stream's state. The commit that follows must write them.
    private func changedRows(of stream: StreamState, in store: DeviceStore) throws(ReelError) -> StorageChanges {
        var changes = StorageChanges()
        let witness = stream.view?.witness
        try stream.view?.withFold { (fold) throws(ReelError) in
            try store.write(&fold, witness: witness, stream.row, &changes)
        }
        stream.storedSeq = stream.seq
        return changes
    }

    private func mustWriteState(_ stream: StreamState) -> Bool {
        // A delta is based on the stored state.
        guard stream.view != nil, !isLoadingDelta(stream) else { return false }
        return stream.isStateDue || stream.eventsBehindState > Self.eventsBehindStateMax
            || stream.bytesBehindState > Self.bytesBehindStateMax
    }

    private func stateIsWritten(_ stream: StreamState, _ store: DeviceStore) {
        let layers = stream.view?.fold.storedObjects?.layers ?? []
        (stream.isStateDue, stream.unwrittenEpoch) = (false, false)
        (stream.eventsBehindState, stream.bytesBehindState) = (0, 0)
        store.unusedGenerations += stream.replacedLayers.filter { !layers.contains($0) }
        stream.replacedLayers = []
        stream.view?.fold.storedObjects?.loaded(upTo: nil)
        stream.readable.isStored = true
    }

    /// Shows the turn's changes to readers. Before the commit these are the differences to the stored state, after it
    /// the stored state itself.
    private func show(_ streams: [StreamState], beforeCommit: Bool) {
        let replaced = streams.map { $0.readable.isReplaced ? $0.fold?.unwrittenObjects() ?? [:] : nil }
        content.change { content in
            for (stream, unwritten) in zip(streams, replaced) {
                tellObservers(of: stream, isComplete: content[stream.name]?.isComplete ?? false)
                // Changed in place, because a copy would take time in proportion to the queue.
                apply(
                    stream,
                    unwritten: !beforeCommit && stream.readable.isStored ? [:] : unwritten,
                    to: &content[stream.name, default: ClientContent.Stream()]
                )
            }
        }
        for stream in streams { stream.observers.signal() }
        if beforeCommit { return }
        for stream in streams { stream.readable = ReadableChanges() }
    }

    /// Gives the changes of the turn to the observers of a stream, who see them with the content that is shown next.
    private func tellObservers(of stream: StreamState, isComplete wasComplete: Bool) {
        let isComplete = stream.view != nil && stream.sync.isComplete
        if !stream.unshown.isEmpty || isComplete != wasComplete { stream.observers.add(stream.unshown) }
        stream.unshown = ContentChanges()
    }

    /// Applies the changes of a stream to the content that readers see.
    ///
    /// - Parameters:
    ///   - stream: the stream, which has changed in this turn.
    ///   - unwritten: all objects that differ from the stored ones; nil: the turn adds its changes to the former ones.
    ///   - shown: the content that readers see.
    private func apply(
        _ stream: StreamState,
        unwritten: [Overlay.Key: FoldedState?]?,
        to shown: inout ClientContent.Stream
    ) {
        stream.readable.apply(to: &shown)
        (shown.opening, shown.observers) = (stream.opening, stream.observers)
        shown.position = stream.readPosition
        shown.isComplete = stream.view != nil && stream.sync.isComplete
        if let layers = stream.fold?.storedObjects?.layers { shown.layers = layers }
        if let unwritten { shown.unwritten = unwritten }
    }

    /// Returns a stream as readers will see it at the end of the turn, but without a first state that still arrives.
    /// Observers and the history of changes learn of the turn's changes only at its end.
    func moment(inTurnOf stream: StreamState) throws(ReelError) -> StreamSnapshot {
        let unwritten = stream.readable.isReplaced ? stream.fold?.unwrittenObjects() ?? [:] : nil
        return try content.moment(of: stream.opening, damageReport) { shown in
            apply(stream, unwritten: unwritten, to: &shown)
            // Events are made and checked without these objects.
            if stream.fold == nil { shown.layers = [] }
        }
    }

    // MARK: The cache

    /// Evicts objects that are equal to their rows, if the objects in memory exceed the limit. Objects of the streams
    /// that changed longest ago are evicted first.
    private func boundCache(of streams: [StreamState]) {
        for stream in streams { stream.fold?.storedObjects?.refresh() }
        var size = opened.values.reduce(0) { $0 + ($1.view?.fold.cachedBytes ?? 0) }
        guard size > cacheBytes else { return }
        // Some room is made, so that the next turns need not look again.
        let goal = cacheBytes / 8 * 7
        for stream in opened.values.sorted(by: { $0.lastTurn < $1.lastTurn }) where size > goal {
            guard let view = stream.view, view.fold.cachedBytes > 0 else { continue }
            let before = view.fold.cachedBytes
            let rest = max(0, before - (size - goal))
            let fits = try? stream.view?.withFold { (fold) throws(ReelError) in fold.evict(above: rest) }
            size -= before - (stream.view?.fold.cachedBytes ?? 0)
            // The rest is not written yet. It is evicted after the next turn.
            if fits == false, !isLoadingDelta(stream) { stream.isStateDue = true }
        }
    }

    // MARK: Opening

    /// Restores a stream from the store.
    func restore(_ name: StreamName, _ start: StartPosition) throws(ReelError) -> StreamState {
        guard let store else { throw .closed }
        let seed = random.next()
        let fresh = Outbox(seed: seed)
        let stored = try store.open(name, newSite: fresh.site)
        var entries = stored.entries
        for index in entries.indices { entries[index].sinceMs = transport.wallMs }
        var outbox = Outbox(site: stored.site, nextOp: stored.nextOp, entries: entries, seed: seed)
        // Answers to publishes of an earlier opening on this connection are then told from those of this one.
        outbox.generation = Int64(openings) << 32
        let stream = StreamState(
            name,
            start: start,
            gapSource,
            row: stored.row,
            outbox: outbox,
            opening: openings
        )
        openings += 1
        for entry in stored.entries where !entry.event.isInternal {
            stream.publications[entry.number] = [PublishHandle(entry.event)]
        }
        stream.queueEpoch = stored.epoch
        stream.upToDateMs = stored.position?.upToDateMs
        stream.storedUpToDateMs = stream.upToDateMs
        if stored.holdsState {
            if let view = try restoredView(name, stored, store) {
                stream.eventsBehindState = view.events
                stream.sync = StreamSync(
                    start: start,
                    gapSource: gapSource,
                    isComplete: stored.position?.isComplete ?? false
                )
                stream.view = view.view
                stream.storedSeq = stored.position?.stateSeq ?? .none
                let fold = view.view.fold
                stream.outbox.cover { site in fold.site(site).map { ($0.op, $0.seq) } }
                noteCovered(by: fold, after: .none, stream)
            } else {
                // Nodes also have the state, but only this device has the queue. So the queue is kept.
                try store.forgetState(stored.row, epoch: stored.epoch)
            }
        }
        if stream.view != nil || !stream.outbox.entries.isEmpty {
            stream.overlay = Overlay(
                of: stream.outbox,
                over: stream.view?.fold,
                stream: name,
                isComplete: stream.sync.isComplete
            )
        }
        // The queue has seen these objects in an earlier run, or must not see them, because they belong to another
        // deployment.
        if let changes = stream.view?.takeChanges(), let fold = stream.fold {
            _ = stream.readable.add(changes, of: fold)
        }
        stream.follow()
        // The queue was laid over objects of the store. The snapshot that they were read from would keep the file from
        // shrinking, and the WAL from starting again, until the stream changes.
        stream.fold?.storedObjects?.refresh()
        stream.recorder = try store.history(stored.row).map(ChangeRecorder.init)
        show([stream], beforeCommit: false)
        stream.cutLoad = try store.readLoad(name, stored.row)
        if stream.cutLoad != nil { stream.progress = LoadProgress() }
        stream.cutLoad?.fold.storedObjects?.refresh()
        if stream.isLayered { planUpkeep() }
        if stream.fold == nil, let cut = stream.cutLoad {
            content.change { $0[name]?.layers = cut.fold.storedObjects?.layers ?? [] }
        }
        return stream
    }

    /// Returns the stored state of a stream with the later events folded; nil if it is damaged.
    private func restoredView(
        _ name: StreamName,
        _ stored: DeviceStore.Stored,
        _ store: DeviceStore
    ) throws(ReelError) -> (view: View, events: Int)? {
        guard let position = stored.position, let state = try store.readState(name, position, stored.row),
            let events = try store.readEvents(stored.row)
        else { return nil }
        var view = View(state.fold, partitions: position.partitions, witness: state.witness)
        view.restore(events, covered: position.covered)
        if let failure = view.fold.storedObjects?.failure {
            guard failure.isDamage else { throw failure }
            return nil
        }
        view.fold.storedObjects?.refresh()
        return (view, events.count)
    }

    // MARK: Damage

    /// Reads a stream's state again if a stored row of it is damaged. Throws if the store failed in another way.
    private func healIfDamaged(_ stream: StreamState) throws(ReelError) {
        guard let failure = stream.fold?.storedObjects?.failure else { return }
        guard failure.isDamage else { throw failure }
        try dropState(of: stream, failure)
    }

    /// Drops the received state of a stream, because it is damaged, and reads it again. The queue is kept.
    func dropState(of stream: StreamState, _ error: ReelError) throws(ReelError) {
        let epoch = stream.fold?.epoch ?? stream.queueEpoch
        if stream.sync.isSubscribed { unsubscribe(stream) }
        step(stream, .closed)
        // A load that ends may have found that the store failed.
        if let failure { throw failure }
        (stream.view, stream.former, stream.queueEpoch) = (nil, nil, epoch)
        (stream.unwritten, stream.isStateDue, stream.replacedLayers, stream.storedSeq) = ([], false, [], .none)
        (stream.cutLoad, stream.unwrittenEpoch, stream.recorder) = (nil, false, nil)
        stream.overlay = Overlay(of: stream.outbox, over: nil, stream: stream.name, isComplete: false)
        stream.readable = ReadableChanges()
        stream.outbox.connected()
        content.change {
            $0[stream.name] = ClientContent.Stream(opening: stream.opening, observers: stream.observers)
            stream.observers.add(ContentChanges(isReset: true))
        }
        // The own events are laid again, and shown with the next turn.
        stream.unshown.isReset = true
        stream.batch = ObjectChangeBatch(seq: .none, isReset: true)
        do throws(ReelError) {
            try store?.forgetState(stream.row, epoch: epoch)
        } catch {
            fail(error)
            throw error
        }
        notify(
            .snapshotUnavailable(stream: stream.name.description, reason: "\(error.code.rawValue): \(error.message)")
        )
        stream.sync = StreamSync(start: stream.sync.start, gapSource: gapSource)
        step(
            stream,
            .opened(
                .init(
                    link: syncLink,
                    hasPlace: hasPlace(stream),
                    isOfFormerEpoch: link?.welcome.map { epoch != nil && epoch != $0.epoch } ?? false
                )
            )
        )
        stream.follow()
    }

    /// Called when a reader has found a damaged row in generations of a stream.
    func foundDamage(in name: StreamName, _ layers: [Int64], _ error: ReelError) {
        guard let stream = opened[name], stream.fold?.storedObjects?.layers == layers, !isClosed else { return }
        do throws(ReelError) { try dropState(of: stream, error) } catch { return fail(error) }
        markDirty(stream)
    }
}

extension ReelError {
    /// True if the error says that stored data is not what was written.
    var isDamage: Bool { [ErrorCode.storeDamaged, .internal, .badJSON].contains(code) }
}

extension StreamState {
    /// True if the rows of the folded state lie in two generations.
    var isLayered: Bool { view?.fold.storedObjects?.layers.count ?? 0 > 1 }

    /// The position up to which the stream was received; nil without a state.
    fileprivate var position: DeviceStore.Position? {
        view.map { view in
            DeviceStore.Position(
                epoch: view.fold.epoch,
                partition: view.fold.partition,
                partitions: view.partitions,
                covered: view.covered,
                isComplete: sync.isComplete,
                stateSeq: storedSeq,
                upToDateMs: upToDateMs
            )
        }
    }
}
