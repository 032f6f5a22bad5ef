internal import ReelCore

/// A snapshot or delta that is being read. Its rows are written as they arrive, so that it takes little memory. Belongs
/// to the client's executor.
///
/// A snapshot goes to a new generation. If it is cut, the rest of it is requested later, also after a restart. A delta
/// to a new generation above that of the folded state if it is large. A small one stays in memory.
final class StateLoad: @unchecked Sendable {
    /// The number of unwritten rows, and of bytes received since the last write, from which the rows are written.
    private static let (rowsMax, bytesMax) = (1_000, 512 << 10)
    private var reader: SnapshotReader
    private var lines = LineSplitter()
    private var status = 0
    private var problem: [UInt8] = []
    private var unwrittenBytes = 0
    /// The largest answer, and the largest size of all objects of the state, in bytes. A node could send rows for ever.
    private let stateBytesMax: Int
    private(set) var receivedBytes = 0
    /// True if this load has written rows.
    private(set) var hasWritten = false
    /// The part of a snapshot that was written, from which a later load can continue.
    private(set) var written: DeviceStore.Load?
    /// The error of the store, or of a row in it; nil: the store has not failed.
    private(set) var storeError: ReelError?
    private let row: Int64
    private let stream: StreamName
    private let objects: StoredObjects
    let node: String
    /// The path and the query of the request.
    let target: String
    let isDelta: Bool
    /// The number of events that the state has consumed which a delta is based on.
    private(set) var base: Int64 = 0
    /// True if this is the rest of a snapshot that was cut.
    private let isContinued: Bool

    /// Creates the load of a snapshot.
    init(of stream: StreamState, from node: String, _ store: DeviceStore, bytesMax: Int) {
        stateBytesMax = bytesMax
        objects = StoredObjects(store.storage, layers: [store.reserveNumber()])
        objects.loaded(upTo: [])
        reader = SnapshotReader(listsChanges: true, source: objects)
        target = "/v1/streams/\(stream.name)/snapshot"
        (self.node, self.row, self.stream) = (node, stream.row, stream.name)
        (isDelta, isContinued) = (false, false)
    }

    /// Creates the load of the rest of a snapshot that was cut.
    init(
        continuing cut: DeviceStore.Load,
        of stream: StreamState,
        from node: String,
        _ store: DeviceStore,
        bytesMax: Int
    ) {
        stateBytesMax = bytesMax
        objects = StoredObjects(store.storage, layers: cut.fold.storedObjects?.layers ?? [])
        var fold = cut.fold
        fold.replaceSource(by: objects)
        let end = SnapshotCut(key: cut.lastKey)
        reader = SnapshotReader(onto: fold, beyond: end)
        target =
            "/v1/streams/\(stream.name)/delta?after=\(cut.after)&epoch=\(fold.epoch)"
            + "&model=\(end.name.model.percentEncoded)&id=\(end.name.id.percentEncoded)"
        (self.node, self.row, self.stream) = (node, stream.row, stream.name)
        (isDelta, isContinued, written) = (false, true, cut)
    }

    /// Creates the load of a delta onto the folded state of a stream.
    init(deltaOf stream: StreamState, from node: String, _ store: DeviceStore, bytesMax: Int) throws(ReelError) {
        stateBytesMax = bytesMax
        guard var fold = stream.view?.fold else { throw ReelError(.internal, "found a delta without a state") }
        let lower = fold.storedObjects?.layers ?? []
        objects = StoredObjects(store.storage, layers: [store.reserveNumber()] + lower)
        target = "/v1/streams/\(stream.name)/delta?after=\(fold.seq)&epoch=\(fold.epoch)"
        fold.replaceSource(by: objects)
        reader = SnapshotReader(onto: fold)
        (self.node, self.row, self.stream) = (node, stream.row, stream.name)
        (isDelta, isContinued, base) = (true, false, fold.consumed)
    }

    /// True if the node has answered with a state, not with an error.
    var isState: Bool { status == 200 }

    /// The generations that the rows of the load are in, the upper one first.
    var layers: [Int64] { objects.layers }

    /// The generations that belong to this load alone.
    var ownLayers: [Int64] { Array(objects.layers.prefix(1)) }

    /// Reads a piece of the answer. Returns the fold once it is complete.
    func received(_ response: TransportResponse, _ store: DeviceStore) throws(ReelError) -> Fold? {
        // A storage keeps old data for a snapshot, and a slow answer takes long.
        defer { objects.refresh() }
        switch response {
        case .head(let status, _): self.status = status
        case .body(let bytes) where status == 200:
            unwrittenBytes += bytes.count
            receivedBytes += bytes.count
            guard receivedBytes <= stateBytesMax else { throw tooLarge }
            try bytes.lend { (bytes) throws(ReelError) in
                try lines.add(bytes) { (line) throws(ReelError) in try reader.read(line: line) }
            }
            if unwrittenBytes >= Self.bytesMax || reader.unwrittenCount >= Self.rowsMax { try write(store) }
        case .body(let bytes): problem += bytes.prefix(4_096 - min(4_096, problem.count))
        case .end where status == 200: return try finish(store)
        case .end: throw ReelError(problem: problem, status: status)
        case .failed(let reason): throw ReelError(.logUnavailable, reason, retryMs: 0)
        }
        return nil
    }

    /// True if the load can be continued after this error. Then the node has not shown that anything is wrong with what
    /// was written: the answer was cut, or the node is busy or behind.
    func mayContinue(after error: ReelError) -> Bool {
        if isState { return error.code == .logUnavailable || isContinued && error.code == .badRange }
        return ![.truncated, .epochChanged, .badRange, .badRequest, .diverged, .notFound].contains(error.code)
    }

    private func finish(_ store: DeviceStore) throws(ReelError) -> Fold {
        try checkObjects()
        if hasWritten || !isDelta { try write(store) }
        var fold = try reader.finish()
        try checkObjects()
        guard fold.stream == stream else {
            throw ReelError(.badFrame, "found a state of the stream \(fold.stream), expected \(stream)")
        }
        objects.loaded(upTo: nil)
        if isDelta, !hasWritten {
            fold.replaceSource(by: StoredObjects(store.storage, layers: Array(objects.layers.dropFirst())))
        }
        return fold
    }

    /// Writes the rows that have arrived, and drops them from memory.
    private func write(_ store: DeviceStore) throws(ReelError) {
        try checkObjects()
        unwrittenBytes = 0
        hasWritten = true
        let former = written
        let lastKey = Self.later(reader.lastObjectKey, former?.lastKey)
        var written: DeviceStore.Load?
        try reader.withFold { (fold) throws(ReelError) in
            _ = fold.takeChanges()
            let progress = isDelta ? nil : lastKey.map { (lastKey: $0, after: former?.after ?? fold.seq) }
            do throws(ReelError) {
                try store.commit(durably: false) { (changes) throws(ReelError) in
                    try store.writeLoad(&fold, progress: progress, row, &changes)
                }
            } catch {
                storeError = error
                throw error
            }
            guard fold.objectBytes <= stateBytesMax else { throw tooLarge }
            fold.evict(above: 0)
            written = progress.map { DeviceStore.Load(fold: fold, lastKey: $0.lastKey, after: $0.after) }
        }
        self.written = written
        // Only a new snapshot names no object that was written before.
        objects.loaded(upTo: isDelta || isContinued ? nil : lastKey)
    }

    /// Throws if a row that the load needs cannot be read.
    private func checkObjects() throws(ReelError) {
        guard let failure = objects.failure else { return }
        storeError = failure
        throw failure
    }

    private var tooLarge: ReelError {
        ReelError(.tooLarge, "found a state of more than \(stateBytesMax) bytes")
    }

    /// Returns the later one of two keys, in the order of a snapshot's lines.
    private static func later(_ a: [UInt8]?, _ b: [UInt8]?) -> [UInt8]? {
        guard let a, let b else { return a ?? b }
        return SnapshotCut(key: a).isPassed(by: b) ? b : a
    }
}

extension String {
    /// The text in the form of a value in the query of a URL.
    fileprivate var percentEncoded: String {
        var text = ""
        for byte in utf8 {
            switch byte {
            case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "a")...UInt8(ascii: "z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"):
                text.unicodeScalars.append(UnicodeScalar(byte))
            default: text += "%" + (byte < 16 ? "0" : "") + String(byte, radix: 16, uppercase: true)
            }
        }
        return text
    }
}
