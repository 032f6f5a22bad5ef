public import ReelCore

/// A stream as this device holds it at one moment. Later changes do not change it. Safe on any thread.
///
/// The device's storage keeps old data for it, so release it soon. `SyncStream.read` lends one for the time of a
/// closure.
public struct StreamSnapshot: Sendable {
    /// Reports a damaged object, with the stream and the generations of its objects.
    typealias DamageReport = @Sendable (_ name: StreamName, _ layers: [Int64], _ error: ReelError) -> Void

    private let name: StreamName
    private let stream: ClientContent.Stream
    let storage: any StorageSnapshot
    /// True if own events that still wait are applied.
    private let showsOwn: Bool
    private let report: DamageReport

    init(
        _ name: StreamName,
        stream: ClientContent.Stream,
        storage: any StorageSnapshot,
        showsOwn: Bool = true,
        report: @escaping DamageReport
    ) {
        (self.name, self.stream, self.storage, self.showsOwn) = (name, stream, storage, showsOwn)
        self.report = report
    }

    /// The stream's name.
    public var id: String { name.description }

    /// The same moment without the own events that still wait. Every device that has folded the same seq of the same
    /// epoch has the same confirmed objects.
    public var confirmed: StreamSnapshot {
        StreamSnapshot(name, stream: stream, storage: storage, showsOwn: false, report: report)
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
    public func object(_ model: String, id: String) throws(ReelError) -> SyncObject? {
        try object(Fold.key(model: model, id: id))
    }

    /// Returns the object of a key of the fold.
    func object(_ key: Overlay.Key) throws(ReelError) -> SyncObject? {
        if let changed = changed(key) { return object(of: changed?.state) }
        return try reporting { () throws(ReelError) in
            let found = try storage.object(key, stream.layers) { (content) throws(ReelError) -> SyncObject? in
                guard let row = try StoredObject.row(in: content) else { return nil }
                return try SyncObject(ObjectName(key), row: row, readAt: stream.position)
            }
            return found ?? nil
        }
    }

    /// Returns the object with this name; nil if it does not exist, was deleted, or has not arrived yet.
    ///
    /// - Throws: `store_damaged` for a damaged object, another code that begins with `store_` if the store failed.
    public func object(_ name: ObjectName) throws(ReelError) -> SyncObject? { try object(name.model, id: name.id) }

    /// Returns true if an own event that has changed or deleted the object is not confirmed yet.
    ///
    /// - Parameters:
    ///   - model: the model of the object.
    ///   - id: the id of the object, unique within its model.
    package func isPending(_ model: String, id: String) -> Bool {
        guard showsOwn, let own = stream.own[Fold.key(model: model, id: id)], let state = own?.state else {
            return false
        }
        return Overlay.confirmed(state.seq) == nil
    }

    /// Returns all objects of a model, sorted by the bytes of their ids. The time and the memory that it takes follow
    /// the number of these objects.
    ///
    /// - Parameter model: the model of the objects.
    /// - Throws: `store_damaged` for a damaged object, another code that begins with `store_` if the store failed.
    public func objects(_ model: String) throws(ReelError) -> [SyncObject] {
        let beginning = Fold.key(model: model, id: "")
        var objects: [SyncObject] = []
        let hasChanges = !stream.unwritten.isEmpty || showsOwn && !stream.own.isEmpty
        try reporting { () throws(ReelError) in
            try storage.forEachObject(stream.layers, beginning: beginning) { (key, row) throws(ReelError) in
                if hasChanges, changed(Array(key)) != nil { return }
                let object = try SyncObject(ObjectName(key), row: row, readAt: stream.position)
                if let object { objects.append(object) }
            }
        }
        for (key, changed) in stream.unwritten where key.starts(with: beginning) && !(showsOwn && isOwn(key)) {
            if let object = object(of: changed?.state) { objects.append(object) }
        }
        for (key, changed) in showsOwn ? stream.own : [:] where key.starts(with: beginning) {
            if let object = object(of: changed?.state) { objects.append(object) }
        }
        func precedes(_ a: SyncObject, _ b: SyncObject) -> Bool {
            a.name.id.utf8.lexicographicallyPrecedes(b.name.id.utf8)
        }
        // The rows come in order, unless an id has escapes.
        let isSorted = zip(objects, objects.dropFirst()).allSatisfy(precedes)
        return isSorted ? objects : objects.sorted(by: precedes)
    }

    /// True if the storage may hold objects of the stream.
    var hasStoredObjects: Bool { !stream.layers.isEmpty }

    /// Returns the keys of all objects that may differ from those of a later moment; nil if there are more than `max`.
    func keysNotShared(with later: StreamSnapshot, max: Int) throws(ReelError) -> Set<Overlay.Key>? {
        var keys = Set(later.stream.unwritten.keys).union(later.stream.own.keys)
        keys.formUnion(Set(stream.unwritten.keys).union(stream.own.keys))
        for (moment, other) in [(self, later), (later, self)] {
            for layer in moment.stream.layers where !other.stream.layers.contains(layer) {
                let (start, prefix) = (StoreKey.object(layer, []), StoreKey.object(layer, []).count)
                try moment.storage.forEach(from: start, to: StoreKey.end(of: start)) { (key, _) throws(ReelError) in
                    keys.insert(Array(key[prefix...]))
                    return keys.count <= max
                }
            }
        }
        return keys.count <= max ? keys : nil
    }

    /// Reports an error that `body` throws because an object is damaged.
    private func reporting<T>(_ body: () throws(ReelError) -> T) throws(ReelError) -> T {
        do throws(ReelError) {
            return try body()
        } catch {
            if error.isDamage { report(name, stream.layers, error) }
            throw error
        }
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
