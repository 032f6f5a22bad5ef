internal import ReelCore

// Catch-up from the stored state to live events: a snapshot or delta if that is shorter, then the subscription.
extension SyncClient {
    /// The number of missing seqs from which a gap is closed by a delta instead of by its events.
    static let deltaFromSeqs: Int64 = 20_000
    /// The number of successive failures to get a snapshot after which the stream is read from its first event.
    static let catchUpFailuresMax = 3

    /// Takes the next step of a stream towards live events, if nothing is running for it.
    func advance(_ stream: StreamState) {
        guard !isClosed, stream.phase == .idle, stream.catchUp == nil, stream.retry == nil else { return }
        if wantsSnapshot(stream) {
            stream.phase = .catchingUp
            return catchUp(stream)
        }
        guard link?.welcome != nil else { return }
        guard hasPlace(stream) else { return beginPolling(stream) }
        stream.phase = .subscribing
        let beginsNow = stream.beginsNow
        let position: ClientFrame.Position = beginsNow ? .now : .after(stream.seq)
        let subscribe = ClientFrame.Subscribe(
            stream: stream.name,
            position: position,
            epoch: stream.view?.fold.epoch,
            last: beginsNow ? nil : stream.view?.witness
        )
        send(ClientFrame(.subscribe(subscribe), ref: Ref.subscribe))
    }

    func wantsSnapshot(_ stream: StreamState) -> Bool {
        guard stream.arrived == nil else { return false }
        if stream.needsSnapshot || stream.isFromOldEpoch { return true }
        guard stream.start != .all, !stream.beginsNow, !stream.isContradicted,
            stream.catchUpFailures < Self.catchUpFailuresMax
        else { return false }
        if stream.start == .snapshot, !stream.isCaughtUp { return true }
        return isFarBehind(stream)
    }

    private func isFarBehind(_ stream: StreamState) -> Bool {
        stream.view.map { $0.head - $0.seq >= Self.deltaFromSeqs } ?? false
    }

    /// Requests a snapshot, or a delta onto the present state, from any node. Live events continue to arrive meanwhile.
    func catchUp(_ stream: StreamState) {
        // The connected node is known to be alive. If it had no answer, another node is asked.
        let connected = link?.welcome == nil ? nil : link?.node
        let asksConnected = stream.catchUpFailures.isMultiple(of: 2)
        guard let node = asksConnected ? connected ?? failover.peer() : failover.peer() else { return }
        let target: String
        let download: Download
        if let fold = stream.view?.fold, fold.seq >= max(0, fold.horizon), !stream.needsSnapshot {
            target = "/v1/streams/\(stream.name)/delta?after=\(fold.seq)&epoch=\(fold.epoch)"
            download = Download(SnapshotReader(onto: fold), of: node, isDelta: true)
        } else {
            target = "/v1/streams/\(stream.name)/snapshot"
            download = Download(SnapshotReader(listsChanges: true), of: node, isDelta: false)
        }
        let name = stream.name
        let request = transport.get(from: node, target, token: token) { [weak self] response in
            self?.assumeIsolated { $0.received(response, download, name) }
        }
        stream.catchUp = StreamState.CatchUp(request: request, deadline: catchUpDeadline(stream))
    }

    /// Starts the timeout of a catch-up, with the times of a fetch. It applies until the answer begins, and to each
    /// piece.
    private func catchUpDeadline(_ stream: StreamState) -> any TransportRequest {
        let (name, ms) = (stream.name, Self.fetchMs << Int64(min(stream.catchUpFailures, Self.fetchDoublings)))
        return after(ms) { client in
            guard let stream = client.opened[name] else { return }
            client.catchUpFailed(stream, ReelError(.logUnavailable, "no answer within \(ms) ms"))
        }
    }

    private func received(_ response: TransportResponse, _ download: Download, _ name: StreamName) {
        guard let stream = opened[name], !isClosed else { return }
        if case .body(let bytes) = response {
            counters.bytesReceived += Int64(bytes.count)
            counters.snapshotBytes += Int64(bytes.count)
        }
        stream.catchUp?.deadline.cancel()
        do throws(ReelError) {
            guard let fold = try download.received(response) else {
                stream.catchUp?.hasBegun = true
                stream.catchUp?.deadline = catchUpDeadline(stream)
                return
            }
            stream.dropCatchUp()
            stream.isCaughtUp = true
            stream.isToldToWait = false
            note(.stateCame(name))
            counters.snapshots += download.isDelta ? 0 : 1
            counters.deltas += download.isDelta ? 1 : 0
            let before = stream.seq
            if link?.welcome == nil {
                stream.arrived = (fold, download.isDelta)
            } else {
                install(fold, isDelta: download.isDelta, stream)
            }
            // A node that is not ahead of this device, or is far behind itself, does not help it over a gap.
            let helps = stream.seq > before && !isFarBehind(stream)
            stream.catchUpFailures = helps ? 0 : stream.catchUpFailures + 1
            advance(stream)
            fillGaps(stream)
        } catch {
            var error = error
            if download.isState { error.message = "the state that \(download.node) has sent: \(error.message)" }
            catchUpFailed(stream, error)
        }
    }

    private func catchUpFailed(_ stream: StreamState, _ error: ReelError) {
        stream.dropCatchUp()
        stream.catchUpFailures += 1
        switch error.code {
        case .aheadOfLog, .diverged:
            if stream.phase != .live, stream.view != nil, !stream.needsSnapshot {
                stream.isContradicted = true
            } else {
                stream.needsSnapshot = true
            }
        case .truncated, .badRange: stream.needsSnapshot = true
        case .epochChanged: break
        // Without a connection the problem `offline` is enough.
        default: if link?.welcome != nil { note(.noState(stream.name, error)) }
        }
        if stream.catchUpFailures >= Self.catchUpFailuresMax, !stream.isToldToWait,
            stream.needsSnapshot || stream.isFromOldEpoch
        {
            // The state is not contained in events, so the client can only continue to ask.
            stream.isToldToWait = true
            notify(.waiting(stream: stream.name.description, reason: "\(error.code.rawValue): \(error.message)"))
        }
        retry(stream, afterMs: min(2_000, 10 << Int64(min(stream.catchUpFailures, 8))))
    }

    /// Continues from the fold of a snapshot, or of a delta onto an earlier fold of the stream.
    func install(_ fold: Fold, isDelta: Bool, _ stream: StreamState) {
        guard let welcome = link?.welcome else { return }
        stream.arrived = nil
        let isNeeded = stream.needsSnapshot && !isDelta
        stream.needsSnapshot = false
        guard fold.epoch == welcome.epoch, fold.stream == stream.name, fold.partition < welcome.partitions else {
            // The fold is of another log: the node that answered differs from the connected one.
            stream.isCaughtUp = false
            return retry(stream, afterMs: 500)
        }
        var progress = View.Progress()
        let hadView = stream.view != nil
        if !hadView {
            stream.view = View(fold, partitions: welcome.partitions)
        } else if stream.view?.install(fold, isNeeded: isNeeded, owns: stream.outbox.owns, &progress) != true {
            return
        }
        stream.outbox.position = .init(fold)
        let consumed: (Site) -> Outbox.LastConsumed? = { site in fold.site(site).map { ($0.op, $0.seq) } }
        if stream.isFromOldEpoch {
            stream.isFromOldEpoch = false
            stream.unwrittenEpoch = true
            stream.outbox.epochChanged(consumed: consumed, seq: fold.seq)
            stream.outbox.expressSent(over: fold)
        } else {
            stream.outbox.bootstrapped(consumed: consumed, seq: fold.seq)
        }
        stream.former = nil
        stream.isComplete = true
        stream.isReplaced = true
        if !hadView || !isDelta { stream.unwrittenState.replaceAll() }
        stream.unwrittenState.isDue = true
        stream.batch = ChangeBatch(seq: stream.seq, isReset: true, seen: stream.batch?.seen ?? [])
        took(progress, stream)
    }

    /// Leaves the former epoch if the connected node, which is not behind, serves another log. The queue is kept, and
    /// the state is read from the new log.
    func leaveFormerEpoch(_ stream: StreamState) {
        guard let welcome = link?.welcome, let epoch = stream.view?.fold.epoch ?? stream.queueEpoch,
            epoch != welcome.epoch
        else { return }
        stream.queueEpoch = nil
        stream.connectionLost()
        stream.dropCatchUp()
        // This also restarts a stream that the former log had stopped.
        stream.phase = .idle
        stream.former = stream.view?.fold
        stream.view = nil
        stream.unwritten = []
        stream.isFromOldEpoch = true
        stream.isContradicted = false
        stream.isCaughtUp = false
        let waiters = stream.waiters
        stream.waiters = []
        for waiter in waiters {
            let error = ReelError(.epochChanged, "seq \(waiter.seq) was awaited of a log that has ended")
            waiter.continuation.resume(throwing: error)
        }
        notify(.epochChanged(stream: stream.name.description))
    }

    /// Reads the state again if the connected node names another number of partitions for the epoch of that state. One
    /// of two nodes has sent a wrong number, and a fold for a wrong number leaves out events. The old state is shown
    /// until the new one arrives.
    func leaveOtherPartitions(_ stream: StreamState, _ welcome: ServerFrame.Welcome) {
        guard let view = stream.view, view.fold.epoch == welcome.epoch, view.partitions != welcome.partitions else {
            return
        }
        stream.connectionLost()
        stream.dropCatchUp()
        stream.phase = .idle
        stream.former = view.fold
        stream.view = nil
        stream.unwritten = []
        stream.unwrittenEpoch = true
        stream.isContradicted = false
        stream.isCaughtUp = false
        stream.needsSnapshot = stream.start != .all
        let reason =
            "\(link?.node ?? "a node") names \(welcome.partitions) partitions, another node has named"
            + " \(view.partitions): the state is read again"
        notify(.waiting(stream: stream.name.description, reason: reason))
    }

    /// Retries the next step after `afterMs`, limited to 10 ms to 30 s.
    func retry(_ stream: StreamState, afterMs: Int64) {
        guard stream.retry == nil else { return }
        let name = stream.name
        stream.retry = after(min(max(afterMs, 10), 30_000)) { client in
            guard let stream = client.opened[name] else { return }
            stream.retry = nil
            client.advance(stream)
            client.fillGaps(stream)
        }
    }
}

/// A snapshot or delta that is being read. Belongs to the client's actor.
private final class Download: @unchecked Sendable {
    private var reader: SnapshotReader
    private var lines = LineSplitter()
    private var status = 0
    private var problem: [UInt8] = []
    private var bytesLeft = Download.bytesMax
    let node: String
    let isDelta: Bool

    /// The largest state in bytes. The objects of a larger one would not fit into the memory of a device.
    static let bytesMax = 1 << 30

    init(_ reader: SnapshotReader, of node: String, isDelta: Bool) {
        self.reader = reader
        self.node = node
        self.isDelta = isDelta
    }

    /// True if the node has answered with a state, not with an error.
    var isState: Bool { status == 200 }

    /// Reads a piece of the answer. Returns the fold once it is complete.
    func received(_ response: TransportResponse) throws(ReelError) -> Fold? {
        switch response {
        case .status(let status): self.status = status
        case .body(let bytes) where status == 200:
            bytesLeft -= bytes.count
            guard bytesLeft >= 0 else {
                throw ReelError(.tooLarge, "found a state of more than \(Self.bytesMax) bytes")
            }
            try bytes.lend { (bytes) throws(ReelError) in
                try lines.add(bytes) { (line) throws(ReelError) in try reader.read(line: line) }
            }
        case .body(let bytes): problem += bytes.prefix(4_096 - min(4_096, problem.count))
        case .end where status == 200: return try reader.finish()
        case .end: throw ReelError(problem: problem, status: status)
        case .failed(let reason): throw ReelError(.logUnavailable, reason, retryMs: 0)
        }
        return nil
    }
}

extension ReelError {
    /// Creates the error that a node's `application/problem+json` describes.
    init(problem: [UInt8], status: Int) {
        let object = problem.withUnsafeBytes { JSON(parsing: $0) }?.object
        let code = object?["code"]?.string.flatMap(ErrorCode.init) ?? .internal
        self.init(code, object?["detail"]?.string ?? "status \(status)")
    }
}
