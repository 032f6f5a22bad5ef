internal import ReelCore

/// A snapshot or delta that is being read. Its rows are written as they arrive, so that it takes little memory. Belongs
/// to the client's executor.
///
/// A snapshot goes to a new generation. A delta goes to a new generation above that of the folded state if it is large.
/// A small one stays in memory.
final class StateLoad: @unchecked Sendable {
    /// The number of unwritten rows, and of bytes received since the last write, from which the rows are written.
    private static let (rowsMax, bytesMax) = (1_000, 512 << 10)
    private var reader: SnapshotReader
    private var lines = LineSplitter()
    private var status = 0
    private var problem: [UInt8] = []
    private var unwrittenBytes = 0
    private var hasWritten = false
    private let row: Int64
    private let stream: StreamName
    private let objects: StoredObjects
    let node: String
    /// The path and the query of the request.
    let target: String
    let isDelta: Bool

    /// Creates the load of a snapshot.
    init(of stream: StreamState, from node: String, _ store: DeviceStore) {
        objects = StoredObjects(store.storage, layers: [store.reserveNumber()])
        objects.loaded(upTo: [])
        reader = SnapshotReader(listsChanges: true, source: objects)
        target = "/v1/streams/\(stream.name)/snapshot"
        (self.node, self.row, self.stream) = (node, stream.row, stream.name)
        isDelta = false
    }

    /// Creates the load of a delta onto the folded state of a stream.
    init(deltaOf stream: StreamState, from node: String, _ store: DeviceStore) throws(ReelError) {
        guard var fold = stream.view?.fold else { throw ReelError(.internal, "found a delta without a state") }
        let lower = fold.storedObjects?.layers ?? []
        objects = StoredObjects(store.storage, layers: [store.reserveNumber()] + lower)
        target = "/v1/streams/\(stream.name)/delta?after=\(fold.seq)&epoch=\(fold.epoch)"
        fold.replaceSource(by: objects)
        reader = SnapshotReader(onto: fold)
        (self.node, self.row, self.stream) = (node, stream.row, stream.name)
        isDelta = true
    }

    /// True if the node has answered with a state, not with an error.
    var isState: Bool { status == 200 }

    /// The generations that the rows of the load are in, the upper one first.
    var layers: [Int64] { objects.layers }

    /// The generations that belong to this load alone.
    var ownLayers: [Int64] { Array(objects.layers.prefix(1)) }

    /// Reads a piece of the answer. Returns the fold once it is complete.
    func received(_ response: TransportResponse, _ store: DeviceStore) throws(ReelError) -> Fold? {
        switch response {
        case .status(let status): self.status = status
        case .body(let bytes) where status == 200:
            unwrittenBytes += bytes.count
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

    private func finish(_ store: DeviceStore) throws(ReelError) -> Fold {
        if hasWritten || !isDelta { try write(store) }
        var fold = try reader.finish()
        if let failure = objects.failure { throw failure }
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
        if let failure = objects.failure { throw failure }
        unwrittenBytes = 0
        hasWritten = true
        let lastKey = isDelta ? nil : reader.lastObjectKey
        try reader.withFold { (fold) throws(ReelError) in
            _ = fold.takeChanges()
            try store.commit(durably: false) { (changes) throws(ReelError) in
                try store.writeLoad(&fold, lastKey: lastKey, row, &changes)
            }
            fold.evict(above: 0)
        }
        objects.loaded(upTo: lastKey)
    }
}
