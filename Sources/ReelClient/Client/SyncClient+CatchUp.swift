internal import ReelCore

// Snapshots and deltas, and the states of former logs that they replace.
extension SyncClient {
    /// Requests a snapshot, or a delta onto the present state.
    func load(_ stream: StreamState, _ kind: StreamSync.Load.Kind, from source: StreamSync.Source) {
        let connected = source == .connection && link?.welcome != nil ? link?.node : nil
        guard let node = connected ?? failover.peer() else { return }
        let (target, download): (String, Download)
        if kind == .delta, let fold = stream.view?.fold {
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
        stream.handles.keep(request: .load, request)
    }

    private func received(_ response: TransportResponse, _ download: Download, _ name: StreamName) {
        guard let stream = opened[name], !isClosed else { return }
        if case .body(let bytes) = response {
            counters.bytesReceived += Int64(bytes.count)
            counters.snapshotBytes += Int64(bytes.count)
        }
        do throws(ReelError) {
            guard let fold = try download.received(response) else { return step(stream, .progressed(.load)) }
            guard fold.stream == name else {
                throw ReelError(.badFrame, "found a state of the stream \(fold.stream), expected \(name)")
            }
            stream.handles.cancel(request: .load)
            counters.snapshots += download.isDelta ? 0 : 1
            counters.deltas += download.isDelta ? 1 : 0
            stream.handles.loaded = (fold, download.isDelta)
            step(stream, .loadFinished(.init(seq: fold.seq, epoch: fold.epoch, partition: fold.partition)))
        } catch {
            var error = error
            if download.isState { error.message = "the state that \(download.node) has sent: \(error.message)" }
            stream.handles.cancel(request: .load)
            step(stream, .loadFailed(error))
        }
    }

    /// Continues from the fold of a snapshot, or of a delta onto an earlier fold of the stream.
    func install(_ stream: StreamState, for need: StreamSync.Need) {
        guard let welcome = link?.welcome, let (fold, isDelta) = stream.handles.loaded.take() else { return }
        let before = stream.seq
        let hadView = stream.view != nil
        var progress = View.Progress()
        if !hadView {
            stream.view = View(fold, partitions: welcome.partitions)
        } else {
            let isNeeded = need == .snapshot && !isDelta
            let isTaken = stream.view?.install(fold, isNeeded: isNeeded, owns: stream.outbox.owns, &progress)
            guard isTaken == true else { return step(stream, .installed(isTaken: false, before: before)) }
        }
        stream.outbox.position = .init(fold)
        let consumed: (Site) -> Outbox.LastConsumed? = { site in fold.site(site).map { ($0.op, $0.seq) } }
        if need == .nextEpoch {
            stream.unwrittenEpoch = true
            stream.outbox.epochChanged(consumed: consumed, seq: fold.seq)
            stream.outbox.expressSent(over: fold)
        } else {
            stream.outbox.bootstrapped(consumed: consumed, seq: fold.seq)
        }
        stream.former = nil
        stream.isReplaced = true
        if !hadView || !isDelta { stream.unwrittenState.replaceAll() }
        stream.unwrittenState.isDue = true
        stream.batch = ChangeBatch(seq: stream.seq, isReset: true, seen: stream.batch?.seen ?? [])
        took(progress, stream)
        step(stream, .installed(isTaken: true, before: before))
    }

    /// Puts the state of a former epoch aside if the connected node, which is not behind, serves another log. The queue
    /// is kept, and the state is read from the new log. Returns true if the epoch has changed.
    func leaveFormerEpoch(_ stream: StreamState) -> Bool {
        guard let welcome = link?.welcome, let epoch = stream.view?.fold.epoch ?? stream.queueEpoch,
            epoch != welcome.epoch
        else { return false }
        stream.queueEpoch = nil
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
        stream.unwrittenEpoch = true
        let reason =
            "\(link?.node ?? "a node") names \(welcome.partitions) partitions, another node has named"
            + " \(view.partitions): the state is read again"
        notify(.waiting(stream: stream.name.description, reason: reason))
        return true
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
