/// Objects that are loaded from an `ObjectSource` when they are needed, and leave the memory when they are not.
extension Fold {
    /// Returns the slot of an object or tombstone; nil if there is neither. Loads it from the source if it is not in
    /// memory.
    mutating func locate(model: Bytes, id: Bytes) -> Int? {
        if let slot = objects.find(model: model, id: id) {
            if source != nil { objects[slot].isRecent = true }
            return slot
        }
        guard source != nil, let stored = stored(model: model, id: id) else { return nil }
        let slot = objects.insert(stored)
        loadedBytes += stored.memory
        return slot
    }

    /// Returns an object or tombstone from memory or from the source; nil if there is neither. Does not change the
    /// cache.
    func folded(model: Bytes, id: Bytes) -> FoldedObject? {
        if let slot = objects.find(model: model, id: id) { return objects[slot] }
        return source == nil ? nil : stored(model: model, id: id)
    }

    /// Returns an object or tombstone from memory or from the source; nil if there is neither.
    func folded(_ key: [UInt8]) -> FoldedObject? {
        Self.split(key) { folded(model: $0, id: $1) }
    }

    /// Reads an object or tombstone that is not in memory.
    private func stored(model: Bytes, id: Bytes) -> FoldedObject? {
        guard let source else { return nil }
        var object = ObjectTable.object(model: model, id: id, seq: .none)
        guard unwritten.removed[object.key] == nil, let row = source.row(for: object.key) else { return nil }
        let error: ReelError? = row.bytes.withUnsafeBytes { bytes in
            do throws(ReelError) {
                try FoldLoader.read(bytes, into: &object)
                return nil
            } catch {
                return error
            }
        }
        if let error {
            source.failed(error)
            return nil
        }
        object.digest = row.digest
        object.isHashed = true
        object.isStored = true
        object.isRecent = true
        object.storedAging = row.agingSeq ?? .none
        object.countedBytes = object.state == .alive ? Int32(clamping: object.countableBytes) : 0
        return object
    }

    // MARK: Writing

    /// An upper bound of the number of rows that differ from those of the source; 0 without a source.
    public var unwrittenCount: Int { unwritten.slots.count + unwritten.removed.count }

    /// Calls `body` with each row that differs from the source, ordered by key, and counts these rows as written.
    ///
    /// The caller writes all of them to the source in one commit, together with `seq` and `writeHead`, before it calls
    /// another method of the fold. If the commit fails, the fold must not be used any more.
    public mutating func takeUnwrittenRows(_ body: (UnwrittenRow) throws(ReelError) -> Void) throws(ReelError) {
        _ = digest()
        let taken = unwritten
        (unwritten.slots, unwritten.removed) = ([], [:])
        // The source knows the aging rows from now on.
        agingObjects = AgingQueue()
        var keys: [(key: [UInt8], slot: Int?)] = taken.removed.keys.map { ($0, nil) }
        for slot in taken.slots where objects[slot].isUnwritten {
            objects[slot].isUnwritten = false
            // A removed key may exist again.
            if taken.removed[objects[slot].key] == nil { keys.append((objects[slot].key, slot)) }
        }
        keys.sort { a, b in a.key.withUnsafeBytes { a in b.key.withUnsafeBytes { a.order($0) < 0 } } }
        for (key, slot) in keys {
            guard let slot = slot ?? self.slot(key) else {
                let former = taken.removed[key] ?? .none
                try body(UnwrittenRow(key: key, row: nil, formerAgingSeq: former > .none ? former : nil))
                continue
            }
            let former = max(objects[slot].storedAging, taken.removed[key] ?? .none)
            var bytes: [UInt8] = []
            bytes.reserveCapacity(objects[slot].rowBytes)
            writeRow(ofObject: slot, to: &bytes)
            let row = StoredRow(bytes: bytes, digest: objects[slot].digest, agingSeq: objects[slot].agingSeq)
            objects[slot].isStored = true
            objects[slot].isUnwritten = false
            objects[slot].storedAging = row.agingSeq ?? .none
            // Its size when it was listed did not include what was written to it since.
            loadedBytes += objects[slot].memory
            try body(UnwrittenRow(key: key, row: row, formerAgingSeq: former > .none ? former : nil))
        }
    }

    /// Calls `body` with each site whose row has changed since the last call, in order. The row is nil if the site was
    /// forgotten. Empty without a source.
    public mutating func takeUnwrittenSites(_ body: (_ site: Site, _ row: [UInt8]?) -> Void) {
        let taken = unwritten.sites
        unwritten.sites = []
        for site in taken.sorted() {
            var row: [UInt8]?
            if sites[site] != nil {
                var bytes: [UInt8] = []
                writeRow(ofSite: site, to: &bytes)
                row = bytes
            }
            body(site, row)
        }
    }

    /// Lists an object whose row differs from now on.
    mutating func noteUnwritten(_ slot: Int) {
        guard source != nil else { return }
        objects[slot].isStored = false
        guard !objects[slot].isUnwritten else { return }
        objects[slot].isUnwritten = true
        unwritten.slots.append(slot)
        loadedBytes += objects[slot].memory
    }

    /// Notes that an object is about to leave the fold for good.
    mutating func noteRemoved(_ slot: Int) {
        guard source != nil else { return }
        let (key, former) = (objects[slot].key, objects[slot].storedAging)
        unwritten.removed[key] = max(former, unwritten.removed[key] ?? .none)
    }

    // MARK: The cache

    /// An estimate of the memory that the objects in memory take, in bytes; 0 without a source.
    public var cachedBytes: Int { countedBytes + loadedBytes }

    /// Removes objects from memory that are equal to their rows and were not used recently, if those in memory exceed
    /// a size. Slots that `takeChanges` has returned are not valid after this call.
    ///
    /// The choice follows the clock algorithm: an object stays for one round of the clock's hand after its last use.
    /// - Parameter bytes: the size in bytes from which objects are removed. Unwritten objects count, and stay. With 0
    ///   all written objects are removed.
    /// - Returns: False if the unwritten objects alone exceed that size, so that they should be written.
    @discardableResult
    public mutating func evict(above bytes: Int) -> Bool {
        guard source != nil, cachedBytes > bytes || bytes == 0 else { return true }
        loadedBytes = 0
        var size = objects.slots.reduce(0) { $0 + ($1.state == .free ? 0 : $1.memory) }
        defer { countedBytes = size }
        var steps = 2 * objects.slots.count
        while size > bytes, steps > 0 {
            steps -= 1
            clockHand = clockHand + 1 < objects.slots.count ? clockHand + 1 : 0
            guard objects[clockHand].state != .free, objects[clockHand].isStored else { continue }
            guard bytes == 0 || !objects[clockHand].isRecent else {
                objects[clockHand].isRecent = false
                continue
            }
            size -= objects[clockHand].memory
            objects.remove(clockHand)
        }
        return size <= bytes
    }

    /// True if a row of the source could not be read, so that no result may be used.
    package var hasFailedToRead: Bool { source?.hasFailed == true }

    /// The rows of the objects that are not in memory; nil: all objects are in memory.
    public var objectSource: (any ObjectSource)? { source }

    /// Replaces the source. The rows of the new one must be the same, with all unwritten rows written.
    public mutating func replaceSource(by source: any ObjectSource) {
        self.source = source
    }

    /// Forgets what the horizon has passed among the rows that are not in memory.
    mutating func forgetStored(upTo horizon: Seq) {
        guard let source else { return }
        var last: AgingKey?
        while true {
            let page = source.agingKeys(upTo: horizon, after: last)
            guard let end = page.last else { return }
            last = end
            for aging in page {
                guard let slot = Self.split(aging.key, { locate(model: $0, id: $1) }) else { continue }
                age(slot, horizon: horizon)
            }
        }
    }

    /// Forgets a tombstone that the horizon has passed, and the history of texts that it has passed.
    private mutating func age(_ slot: Int, horizon: Seq) {
        switch objects[slot].state {
        case .tombstone where objects[slot].seq <= horizon: forget(object: slot)
        case .alive: settle(slot, below: horizon)
        default: break
        }
    }

    /// Drops the history of texts at or below the horizon. The digest stays the same, the row does not.
    mutating func settle(_ slot: Int, below horizon: Seq) {
        if objects[slot].settle(below: horizon) { noteUnwritten(slot) }
    }
}

/// The list of the rows that differ from those of a fold's source.
struct UnwrittenRows: Sendable {
    /// The slots of objects and tombstones with other rows. A slot that was freed since is not `isUnwritten`, and one
    /// that was used again is listed twice.
    var slots: [Int] = []
    /// The keys that were removed at some moment since the last write, each with the `agingSeq` of the source's row;
    /// −1 if the source has none.
    var removed: [[UInt8]: Seq] = [:]
    /// The sites with other rows, also those that were forgotten.
    var sites: Set<Site> = []
}
