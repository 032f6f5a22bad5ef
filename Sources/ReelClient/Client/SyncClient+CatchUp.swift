internal import ReelCore

// Snapshots and deltas, and the states of former logs that they replace.
extension SyncClient {
    /// Requests a snapshot, or a delta onto the present state.
    func load(_ stream: StreamState, _ kind: StreamSync.Load.Kind, from source: StreamSync.Source) {
        let connected = source == .connection && link?.welcome != nil ? link?.node : nil
        guard let store, let node = connected ?? failover.peer() else { return }
        let load: StateLoad
        do throws(ReelError) {
            // A delta is based on the stored state.
            if stream.isStateDue {
                let view = stream.view == nil
                stream.follow()
                try commit([stream], to: store)
                // The state was damaged, and another load has begun.
                if (stream.view == nil) != view { return }
            }
            // A state has at most two generations, so a delta waits until its rows are in one.
            if kind == .delta, stream.isLayered { return loadLater(stream, kind, from: source) }
            load = try newLoad(stream, kind, from: node, store)
        } catch {
            return fail(error)
        }
        stream.load = load
        if !load.isDelta, stream.fold == nil { content.change { $0[stream.name]?.layers = load.layers } }
        let name = stream.name
        let request = transport.get(from: node, load.target, token: token) { [weak self] response in
            self?.assumeIsolated { $0.received(response, load, name) }
        }
        stream.handles.keep(request: .load, request)
    }

    /// The pause before a delta is requested for a state whose rows lie in two generations.
    private static let mergePauseMs: Int64 = 20

    private func loadLater(_ stream: StreamState, _ kind: StreamSync.Load.Kind, from source: StreamSync.Source) {
        planUpkeep()
        let name = stream.name
        let pause = after(Self.mergePauseMs) { client in
            if let stream = client.opened[name] { client.load(stream, kind, from: source) }
        }
        stream.handles.keep(request: .load, pause)
    }

    private func newLoad(
        _ stream: StreamState,
        _ kind: StreamSync.Load.Kind,
        from node: String,
        _ store: DeviceStore
    ) throws(ReelError) -> StateLoad {
        // A cut snapshot is kept meanwhile, for the case that the delta does not reach back far enough.
        if kind == .delta { return try StateLoad(deltaOf: stream, from: node, store, bytesMax: stateBytesMax) }
        if let cut = stream.cutLoad, link?.welcome.map({ $0.epoch == cut.fold.epoch }) ?? true {
            stream.cutLoad = nil
            return StateLoad(continuing: cut, of: stream, from: node, store, bytesMax: stateBytesMax)
        }
        dropCutLoad(of: stream)
        return StateLoad(of: stream, from: node, store, bytesMax: stateBytesMax)
    }

    private func received(_ response: TransportResponse, _ load: StateLoad, _ name: StreamName) {
        guard let stream = opened[name], stream.load === load, let store, !isClosed else { return }
        if case .body(let bytes) = response {
            if bytes.isEmpty { return }
            counters.bytesReceived += Int64(bytes.count)
            counters.snapshotBytes += Int64(bytes.count)
        }
        do throws(ReelError) {
            let fold = try load.received(response, store)
            if load.isState, !load.isDelta {
                var progress = stream.progress ?? LoadProgress()
                progress.received(response)
                stream.progress = progress
            }
            guard let fold else { return step(stream, .progressed(.load)) }
            stream.handles.cancel(request: .load)
            counters.snapshots += load.isDelta ? 0 : 1
            counters.deltas += load.isDelta ? 1 : 0
            stream.load = nil
            if let welcome = link?.welcome, fold.epoch == welcome.epoch,
                fold.partition != name.partition(of: welcome.partitions)
            {
                discard(fold, of: stream)
                throw ReelError(.badFrame, "found partition \(fold.partition) of a log of \(welcome.partitions)")
            }
            stream.handles.loaded = .init(
                fold: fold,
                isDelta: load.isDelta,
                listsChanges: !load.hasWritten
            )
            var loaded = StreamSync.Loaded(seq: fold.seq, epoch: fold.epoch, partition: fold.partition)
            loaded.isShort =
                load.isDelta && stream.eventCost.exceeds(delta: load.receivedBytes, events: fold.consumed - load.base)
            step(stream, .loadFinished(loaded))
        } catch {
            var error = error
            stream.handles.cancel(request: .load)
            if let storeError = load.storeError { return failed(storeError, loading: stream) }
            if load.mayContinue(after: error) { cutLoad(of: stream) } else { endLoad(of: stream) }
            if load.isState { error.message = "the state that \(load.node) has sent: \(error.message)" }
            step(stream, .loadFailed(error))
        }
    }

    /// Called when the store has failed during a load. A damaged state is dropped and read again.
    private func failed(_ error: ReelError, loading stream: StreamState) {
        guard error.isDamage else { return fail(error) }
        endLoad(of: stream)
        do throws(ReelError) { try dropState(of: stream, error) } catch { return fail(error) }
        markDirty(stream)
    }

    /// Ends the running load of a stream, and keeps what a later load can continue.
    func cutLoad(of stream: StreamState) {
        guard let load = stream.load, let written = load.written else { return endLoad(of: stream) }
        (stream.load, stream.cutLoad) = (nil, written)
        if load.hasWritten { stream.sync.loadAdvanced() }
    }

    /// Gives up the running load of a stream, and what it has written.
    func endLoad(of stream: StreamState) {
        guard let load = stream.load.take() else { return }
        stream.progress = nil
        if stream.fold == nil { content.change { $0[stream.name]?.layers = [] } }
        drop(load.ownLayers, ofSnapshot: !load.isDelta, of: stream)
    }

    /// Gives up the snapshot of a stream that was cut.
    private func dropCutLoad(of stream: StreamState) {
        stream.progress = nil
        guard let cut = stream.cutLoad.take() else { return }
        drop(cut.fold.storedObjects?.layers ?? [], ofSnapshot: true, of: stream)
    }

    /// Removes the generations of a load that is not used.
    private func drop(_ layers: [Int64], ofSnapshot isSnapshot: Bool, of stream: StreamState) {
        guard let store else { return }
        do throws(ReelError) {
            if isSnapshot {
                try store.dropLoad(stream.row, layers: layers)
            } else {
                store.unusedGenerations += layers
            }
        } catch {
            fail(error)
        }
        planUpkeep()
    }

    /// True if a delta is being read, which is based on the stored state.
    func isLoadingDelta(_ stream: StreamState) -> Bool { stream.load?.isDelta == true }

    /// Continues from the fold of a snapshot, or of a delta onto an earlier fold of the stream.
    func install(_ stream: StreamState, for need: StreamSync.Need) {
        guard let welcome = link?.welcome, let loaded = stream.handles.loaded.take() else { return }
        let fold = loaded.fold
        let before = stream.seq
        guard fold.partition == stream.name.partition(of: welcome.partitions) else {
            discard(fold, of: stream)
            return step(stream, .installed(isTaken: false, before: before))
        }
        let former = stream.fold?.storedObjects?.layers ?? []
        var progress = stream.newProgress
        if stream.view == nil {
            stream.view = View(fold, partitions: welcome.partitions)
        } else {
            let isNeeded = need == .snapshot && !loaded.isDelta
            let isTaken = stream.view?.install(fold, isNeeded: isNeeded, owns: stream.outbox.owns, &progress)
            guard isTaken == true else {
                discard(fold, of: stream)
                return step(stream, .installed(isTaken: false, before: before))
            }
        }
        stream.replacedLayers += former
        dropCutLoad(of: stream)
        stream.outbox.position = .init(fold)
        let consumed: (Site) -> Outbox.LastConsumed? = { site in fold.site(site).map { ($0.op, $0.seq) } }
        // Events of another log, or of another partition, must not be folded onto this state.
        stream.unwrittenEpoch = need == .nextEpoch || stream.former != nil
        if need == .nextEpoch {
            stream.outbox.epochChanged(consumed: consumed, seq: fold.seq)
            stream.outbox.expressSent(over: fold)
        } else {
            stream.outbox.bootstrapped(consumed: consumed, seq: fold.seq)
        }
        noteCovered(by: fold, after: before, stream)
        stream.former = nil
        stream.isStateDue = true
        if loaded.isDelta, loaded.listsChanges {
            stream.replacement = stream.replacement ?? .listed
        } else {
            stream.replacement = .whole
            stream.batch = ObjectChangeBatch(seq: stream.seq, isReset: true, seen: stream.batch?.seen ?? [])
        }
        took(progress, stream)
        step(stream, .installed(isTaken: true, before: before))
    }

    /// Gives up a state that has arrived and is not installed.
    func discard(_ fold: Fold, of stream: StreamState) {
        let used = stream.fold?.storedObjects?.layers ?? []
        let layers = (fold.storedObjects?.layers ?? []).filter { !used.contains($0) }
        drop(layers, ofSnapshot: layers.count == fold.storedObjects?.layers.count, of: stream)
    }

    /// Puts the state of a former epoch aside if the connected node, which is not behind, serves another log. The queue
    /// is kept, and the state is read from the new log. Returns true if the epoch has changed.
    func leaveFormerEpoch(_ stream: StreamState) -> Bool {
        guard let welcome = link?.welcome, let epoch = stream.view?.fold.epoch ?? stream.queueEpoch,
            epoch != welcome.epoch
        else { return false }
        stream.queueEpoch = nil
        // The state of the new log shows which of the covered events that log has.
        stream.forgetQuestions()
        stream.former = stream.view?.fold
        stream.view = nil
        stream.unwritten = []
        let waiters = stream.waiters
        stream.waiters = []
        for waiter in waiters {
            let error = ReelError(.epochChanged, "seq \(waiter.seq) was awaited of a log that has ended")
            waiter.continuation.resume(throwing: error)
        }
        notify(.epochChanged(stream: stream.name.description))
        return true
    }

    /// Puts the state aside if the connected node names another number of partitions for the epoch of that state. One
    /// of two nodes has sent a wrong number, and a fold for a wrong number leaves out events. The old state is shown
    /// until the new one arrives. Returns true if the numbers differ.
    func leaveOtherPartitions(_ stream: StreamState, _ welcome: ServerFrame.Welcome) -> Bool {
        guard let view = stream.view, view.fold.epoch == welcome.epoch, view.partitions != welcome.partitions else {
            return false
        }
        stream.former = view.fold
        stream.view = nil
        stream.unwritten = []
        let reason =
            "\(link?.node ?? "a node") names \(welcome.partitions) partitions, another node has named"
            + " \(view.partitions): the state is read again"
        notify(.snapshotUnavailable(stream: stream.name.description, reason: reason))
        return true
    }
}

extension ReelError {
    /// Creates the error that a node's `application/problem+json` describes.
    init(problem: [UInt8], status: Int) {
        let object = problem.withUnsafeBytes { JSONValue(parsing: $0) }?.object
        let code = object?["code"]?.string.flatMap(ErrorCode.init) ?? .internal
        // No node can say anything about the store of this device.
        self.init(code.isOfDevice ? .internal : code, object?["detail"]?.string ?? "status \(status)")
    }
}
