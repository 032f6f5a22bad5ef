public import ReelCore

/// A stream as this device holds it at one moment. Later changes do not change it. Safe on any thread.
///
/// The device's storage keeps old data for it, so release it soon. `SyncStream.read` lends one for the time of a
/// closure.
public struct StreamSnapshot: Sendable {
    /// The stream's name.
    public let id: String
    private let stream: ClientContent.Stream
    private let storage: any StorageSnapshot
    /// True if own events that still wait are applied.
    private let showsOwn: Bool

    init(id: String, stream: ClientContent.Stream, storage: any StorageSnapshot, showsOwn: Bool = true) {
        (self.id, self.stream, self.storage, self.showsOwn) = (id, stream, storage, showsOwn)
    }

    /// The same moment without the own events that still wait. Every device that has folded the same seq of the same
    /// epoch has the same confirmed objects.
    public var confirmed: StreamSnapshot {
        StreamSnapshot(id: id, stream: stream, storage: storage, showsOwn: false)
    }

    /// The last seq of the partition up to which everything is covered and folded; −1: nothing yet.
    public var seq: Seq { stream.position.seq }

    /// The identity of the log; nil until it is known.
    public var epoch: Epoch? { stream.position.epoch }

    /// True if the device has had the whole stream up to `seq`, so that an object that is absent does not exist. False
    /// while the first snapshot of a stream arrives: objects that have arrived can be read, others are absent.
    public var isComplete: Bool { stream.isComplete }

    /// Returns the object; nil if it does not exist, was deleted, or has not arrived yet (see `isComplete`).
    ///
    /// - Parameters:
    ///   - model: the model of the object.
    ///   - id: the id of the object, unique within its model.
    /// - Throws: `store_damaged` for a damaged object, another code that begins with `store_` if the store failed.
    public func object(_ model: String, _ id: String) throws(ReelError) -> SyncObject? {
        let key = Fold.key(model: model, id: id)
        if let changed = changed(key) { return object(of: changed?.state) }
        guard let row = try StoredObject.find(key, stream.layers, storage)?.row else { return nil }
        return object(of: try row.state(key))
    }

    /// Returns all objects of a model, sorted by the bytes of their ids. The time and the memory that it takes follow
    /// the number of these objects.
    ///
    /// - Parameter model: the model of the objects.
    /// - Throws: `store_damaged` for a damaged object, another code that begins with `store_` if the store failed.
    public func objects(_ model: String) throws(ReelError) -> [SyncObject] {
        let beginning = Fold.key(model: model, id: "")
        var objects: [SyncObject] = []
        var cursor = LayeredRows(stream.layers, beginning: beginning, storage)
        while let (key, row) = try cursor.next() {
            guard changed(key) == nil, let object = object(of: try row.state(key)) else { continue }
            objects.append(object)
        }
        for (key, changed) in stream.unwritten where key.starts(with: beginning) && !(showsOwn && isOwn(key)) {
            if let object = object(of: changed?.state) { objects.append(object) }
        }
        for (key, changed) in showsOwn ? stream.own : [:] where key.starts(with: beginning) {
            if let object = object(of: changed?.state) { objects.append(object) }
        }
        return objects.sorted { $0.name.id.utf8.lexicographicallyPrecedes($1.name.id.utf8) }
    }

    private func isOwn(_ key: Overlay.Key) -> Bool { stream.own[key] != nil }

    /// Returns an object that differs from the stored one; nil if it does not differ.
    private func changed(_ key: Overlay.Key) -> FoldedState?? {
        if showsOwn, let own = stream.own[key] { return .some(own) }
        return stream.unwritten[key]
    }

    private func object(of state: ObjectState?) -> SyncObject? {
        guard let state, !state.isDeleted else { return nil }
        return SyncObject(state, readAt: stream.position)
    }
}

extension StoredRow {
    /// Returns the object or tombstone of the row. Throws `store_damaged` if it is no such row.
    fileprivate func state(_ key: [UInt8]) throws(ReelError) -> ObjectState {
        let state: ObjectState? = bytes.withUnsafeBytes { try? ObjectState(row: $0, key: key) }
        guard let state else { throw key.withUnsafeBytes { ReelError.damagedStore($0) } }
        return state
    }
}

/// The rows of one or two generations whose keys have a common beginning, in the order of the keys. Reads them page by
/// page.
struct LayeredRows {
    private struct Layer {
        let generation: Int64
        /// The first key of the storage that was not read yet; nil: all were read.
        var start: [UInt8]?
        let end: [UInt8]
        var page: ArraySlice<(key: [UInt8], row: StoredRow?)> = []
    }

    private static let pageCount = 256

    private let storage: any StorageSnapshot
    private var layers: [Layer]

    init(_ generations: [Int64], beginning: [UInt8], _ storage: any StorageSnapshot) {
        self.storage = storage
        layers = generations.map { generation in
            let start = StoreKey.object(generation, beginning)
            return Layer(generation: generation, start: start, end: StoreKey.end(of: start))
        }
    }

    /// Returns the next row; nil after the last one.
    mutating func next() throws(ReelError) -> (key: [UInt8], row: StoredRow)? {
        while true {
            for index in layers.indices where layers[index].page.isEmpty { try read(index) }
            let heads = layers.compactMap(\.page.first?.key)
            guard let key = heads.min(by: KeyOrder.precedes) else { return nil }
            var row: StoredRow??
            for index in layers.indices where layers[index].page.first?.key == key {
                let taken = layers[index].page.removeFirst().row
                if row == nil { row = .some(taken) }
            }
            if case .some(.some(let row)) = row { return (key, row) }
        }
    }

    private mutating func read(_ index: Int) throws(ReelError) {
        guard let start = layers[index].start else { return }
        let prefix = StoreKey.object(layers[index].generation, []).count
        var page: [(key: [UInt8], row: StoredRow?)] = []
        try storage.forEach(from: start, to: layers[index].end) { (key, value) throws(ReelError) in
            guard let content = SealedValue.open(value, for: key) else { throw ReelError.damagedStore(key) }
            page.append((Array(key[prefix...]), try StoredObject(content).row))
            return page.count < Self.pageCount
        }
        let isLast = page.count < Self.pageCount
        layers[index].start = isLast ? nil : StoreKey.object(layers[index].generation, page[page.count - 1].key) + [0]
        layers[index].page = page[...]
    }
}
