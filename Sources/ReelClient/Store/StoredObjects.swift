internal import ReelCore

/// The rows of a stream's objects in a storage, for its fold. Belongs to the client's executor.
///
/// The rows lie in one or two generations. While a delta is received, its rows go to a generation of their own above
/// the former one, whose rows it replaces. A row without content in the upper one stands for an object that is gone.
final class StoredObjects: ObjectSource, @unchecked Sendable {
    private let storage: any DeviceStorage
    /// The generations, the upper one first.
    let layers: [Int64]
    /// The last object that the load of a new snapshot has written. There are no rows beyond it. Nil: there may be.
    private var loadedUpTo: SnapshotCut?
    private var snapshot: (any StorageSnapshot)?
    /// The first error since the objects were opened.
    private(set) var failure: ReelError?

    private static let pageCount = 1_000

    init(_ storage: any DeviceStorage, layers: [Int64]) {
        self.storage = storage
        self.layers = layers
    }

    /// The generation that new rows go to.
    var generation: Int64 { layers.last ?? 0 }

    /// Called after a commit has changed the rows, and at the end of a turn. A snapshot that is held for long makes the
    /// storage keep old data.
    func refresh() { snapshot = nil }

    /// Called when a load has written all rows up to this key, in order, and will write later ones. With nil the
    /// following keys may have rows.
    func loaded(upTo key: [UInt8]?) {
        loadedUpTo = key.map { SnapshotCut(key: $0) }
        refresh()
    }

    func row(for key: [UInt8]) -> StoredRow? {
        if let loadedUpTo, loadedUpTo.isPassed(by: key) { return nil }
        return read(nil) { snapshot throws(ReelError) -> StoredRow? in
            try StoredObject.find(key, layers, snapshot)?.row
        }
    }

    func agingKeys(upTo seq: Seq, after last: AgingKey?) -> [AgingKey] {
        read([]) { snapshot throws(ReelError) -> [AgingKey] in
            var keys: [AgingKey] = []
            for layer in layers { keys += try Self.agingKeys(of: layer, upTo: seq, after: last, snapshot) }
            guard layers.count > 1 else { return keys }
            keys.sort { $0.seq < $1.seq || $0.seq == $1.seq && KeyOrder.precedes($0.key, $1.key) }
            var page: [AgingKey] = []
            for key in keys where page.last != key && page.count < Self.pageCount { page.append(key) }
            return page
        }
    }

    private static func agingKeys(
        of layer: Int64,
        upTo seq: Seq,
        after last: AgingKey?,
        _ snapshot: any StorageSnapshot
    ) throws(ReelError) -> [AgingKey] {
        let start = last.map { StoreKey.aging(layer, $0) + [0] } ?? StoreKey.aging(layer)
        let end = StoreKey.aging(layer, AgingKey(seq: seq + 1, key: []))
        guard KeyOrder.precedes(start, end) else { return [] }
        var keys: [AgingKey] = []
        try snapshot.forEach(from: start, to: end) { (key, _) throws(ReelError) -> Bool in
            guard let seq = StoreKey.number(in: key, at: 9) else { throw ReelError.damagedStore(key) }
            keys.append(AgingKey(seq: seq, key: Array(key[17...])))
            return keys.count < pageCount
        }
        return keys
    }

    var hasFailed: Bool { failure != nil }

    func failed(_ error: ReelError) {
        if failure == nil { failure = error }
    }

    private func read<T>(_ absent: T, _ body: (any StorageSnapshot) throws(ReelError) -> T) -> T {
        do throws(ReelError) {
            if let snapshot { return try body(snapshot) }
            let taken = try storage.snapshot()
            snapshot = taken
            return try body(taken)
        } catch {
            failed(error)
            return absent
        }
    }
}

/// An object's row as the store keeps it: the digest, the `agingSeq` with −1 for none, and the fold's row. Without
/// content it stands for an object that is gone.
struct StoredObject {
    /// The row; nil: the object is gone.
    let row: StoredRow?

    private static let headBytes = 16

    /// Returns the row of an object in the uppermost generation that has one; nil if none has.
    static func find(
        _ key: [UInt8],
        _ layers: [Int64],
        _ snapshot: any StorageSnapshot
    ) throws(ReelError) -> StoredObject? {
        try snapshot.object(key, layers) { (content) throws(ReelError) in try StoredObject(content) }
    }

    init(_ row: StoredRow?) {
        self.row = row
    }

    init(_ content: Bytes) throws(ReelError) {
        guard let bytes = try Self.row(in: content) else {
            row = nil
            return
        }
        let aging = Seq(littleEndian: content.loadUnaligned(fromByteOffset: 8, as: Seq.self))
        row = StoredRow(
            bytes: Array(bytes),
            digest: UInt64(littleEndian: content.loadUnaligned(as: UInt64.self)),
            agingSeq: aging < 0 ? nil : aging
        )
    }

    /// Returns the fold's row in the stored form; nil: the object is gone.
    static func row(in content: Bytes) throws(ReelError) -> Bytes? {
        if content.isEmpty { return nil }
        guard content.count >= headBytes else { throw ReelError(.storeDamaged, "found a row without its head") }
        return Bytes(rebasing: content[headBytes...])
    }

    /// The size of the stored form in bytes.
    var count: Int { row.map { Self.headBytes + $0.bytes.count } ?? 0 }

    /// Appends the stored form.
    func write(to bytes: inout [UInt8]) {
        guard let row else { return }
        withUnsafeBytes(of: row.digest.littleEndian) { bytes.append(contentsOf: $0) }
        withUnsafeBytes(of: (row.agingSeq ?? .none).littleEndian) { bytes.append(contentsOf: $0) }
        bytes += row.bytes
    }
}

extension StorageSnapshot {
    /// Calls `body` with the stored form of an object in the uppermost generation that has one. Returns nil if none
    /// has. Throws `store_damaged` if the pair is damaged or `body` cannot read it.
    ///
    /// - Parameters:
    ///   - key: the key of the object.
    ///   - layers: the generations, the upper one first.
    ///   - body: reads the stored form, which is empty for an object that is gone.
    func object<T>(
        _ key: [UInt8],
        _ layers: [Int64],
        _ body: (_ content: Bytes) throws(ReelError) -> T
    ) throws(ReelError) -> T? {
        for layer in layers {
            if let found = try sealed(StoreKey.object(layer, key), body) { return found }
        }
        return nil
    }

    /// Calls `body` with each object of the uppermost generation that has it, whose key has a beginning. In each
    /// generation, the keys come in the order of their bytes.
    ///
    /// - Parameters:
    ///   - layers: the generations, the upper one first.
    ///   - beginning: the beginning of the keys.
    ///   - body: gets the key and the fold's row. Its error counts as damage of the row.
    /// - Throws: `store_damaged` for a damaged row, another code that begins with `store_` if the store failed.
    func forEachObject(
        _ layers: [Int64],
        beginning: [UInt8],
        _ body: (_ key: Bytes, _ row: Bytes) throws(ReelError) -> Void
    ) throws(ReelError) {
        var upperKeys: Set<[UInt8]> = []
        for (depth, layer) in layers.enumerated() {
            let (start, prefix) = (StoreKey.object(layer, beginning), StoreKey.object(layer, []).count)
            try forEach(from: start, to: StoreKey.end(of: start)) { (storeKey, value) throws(ReelError) in
                let key = Bytes(rebasing: storeKey[prefix...])
                if depth > 0, upperKeys.contains(Array(key)) { return true }
                if depth < layers.count - 1 { upperKeys.insert(Array(key)) }
                guard let content = SealedValue.open(value, for: storeKey) else { throw .damagedStore(storeKey) }
                do throws(ReelError) {
                    if let row = try StoredObject.row(in: content) { try body(key, row) }
                } catch {
                    throw .damagedStore(storeKey)
                }
                return true
            }
        }
    }
}
