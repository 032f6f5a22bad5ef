/// The state of one stream, computed by a pure function from events, in order, to objects. The result is the same on
/// every node and client, independent of their settings.
///
/// `Fold` is a value: copies share storage until one of them changes. It has no clock and does no I/O. The owner passes
/// every seq of the partition to the fold, in order: events to `apply`, all other seqs to `advance`. `seq` is therefore
/// the seq up to which the state is true.
public struct Fold: Sendable {
    /// The version of the rules.
    public static let version: Int64 = 1

    /// The stream of the folded events.
    public let stream: StreamName
    /// The partition that contains the stream.
    public let partition: Int
    /// The log that the seqs belong to.
    public let epoch: Epoch
    /// The last seq of the partition that has been folded; −1 if there is none.
    public internal(set) var seq = Seq.none
    /// The epoch that follows this one; nil until the end of this epoch has been folded.
    public internal(set) var next: Epoch?
    /// The number of consumed events.
    public internal(set) var consumed: Int64 = 0
    /// The seqs of every 4,096th consumed event: the last 16 of them, oldest first.
    public internal(set) var marks: [Seq] = []

    var objects = ObjectTable()
    /// The seq of the last barrier that retired sites; −1 if there is none.
    public internal(set) var retired = Seq.none
    var sites: [Site: SiteState] = [:]
    /// The number of sites that have ended and are not forgotten yet.
    public internal(set) var endedSites = 0
    /// The sites that have lost texts.
    var losingSites: Set<Site> = []
    /// The number of lost fields of all sites together.
    var lostCount = 0
    /// The slots of tombstones and of spliced texts.
    var agingObjects = AgingQueue<Int>()
    var agingSites = AgingQueue<Site>()

    /// The sum of all line hashes that are up to date.
    var digestSum: UInt64 = 0
    /// The number of living objects at the last call of `digest()`.
    public internal(set) var livingObjects = 0
    /// The size of the living objects in bytes at the last call of `digest()`: model, id, and the fields as canonical
    /// JSON. Histories of texts do not count.
    public internal(set) var objectBytes = 0
    /// The slots with hashes that are not in `digestSum`. The list may also contain duplicates, and slots that are free
    /// or hashed by now.
    var unhashedObjects: [Int] = []
    var unhashedSites: [Site] = []
    /// True if the fold lists its changes for `takeChanges`.
    let listsChanges: Bool
    var changes = Changes()

    /// The rows of the objects that are not in memory; nil: all objects are in memory.
    var source: (any ObjectSource)?
    /// The rows that differ from those of the source.
    var unwritten = UnwrittenRows()
    /// An estimate of the bytes that were added to the objects in memory since the last look for objects to evict.
    var loadedBytes = 0
    /// An estimate of the bytes of the objects in memory, as of that look.
    var countedBytes = 0
    /// The slot at which the last look for objects to evict has ended.
    var clockHand = 0

    /// Creates the empty state of a stream that has no events yet.
    ///
    /// - Parameters:
    ///   - stream: the stream of the events that will be folded.
    ///   - partition: the partition that contains the stream.
    ///   - epoch: the log that the seqs belong to.
    ///   - listsChanges: if true, the fold keeps a list of the rows that change, for `takeChanges`.
    ///   - source: an empty source to which the caller writes the rows; nil: the fold keeps all objects in memory.
    public init(
        stream: StreamName,
        partition: Int,
        epoch: Epoch,
        listsChanges: Bool = false,
        source: (any ObjectSource)? = nil
    ) {
        self.stream = stream
        self.partition = partition
        self.epoch = epoch
        self.listsChanges = listsChanges
        self.source = source
    }

    /// The seq at or below which the state keeps no history: the oldest of the 16 marks. −1 while there are fewer than
    /// 16.
    public var horizon: Seq {
        marks.count == Limits.marks ? marks[0] : .none
    }

    /// Returns the horizon that the state has once it has consumed as many further events as `count` marks stand for.
    /// `count`: at most the number of kept marks.
    public func horizon(afterMarks count: Int) -> Seq {
        let index = marks.count + count - Limits.marks
        return marks.indices.contains(index) ? marks[index] : .none
    }

    /// Notes that no further record up to `seq` changes the state. Such records are events of other streams and void
    /// records.
    public mutating func advance(to seq: Seq) {
        self.seq = max(self.seq, seq)
    }

    /// Applies the barrier at `seq` of the stream's partition.
    public mutating func apply(_ barrier: Barrier, seq: Seq) {
        switch barrier {
        case .end(let next): self.next = next
        case .retire(let before, let stream) where stream == self.stream: retire(before: before, at: seq)
        case .fold, .open, .retire: break
        }
        advance(to: seq)
    }

    /// Ends all sites that have consumed no event above the seq `before`.
    private mutating func retire(before: Seq, at seq: Seq) {
        retired = seq
        for site in sites.keys {
            guard let index = sites.index(forKey: site), sites.values[index].end == .none,
                sites.values[index].seq <= before
            else { continue }
            touch(site: site, at: index)
            end(site, at: index, seq: seq)
        }
    }

    /// Marks a site as ended at `seq`.
    mutating func end(_ site: Site, at index: Dictionary<Site, SiteState>.Index, seq: Seq) {
        if sites.values[index].end == .none { endedSites += 1 }
        sites.values[index].end = seq
        agingSites.push(site, at: seq)
    }

    // MARK: Changes

    mutating func touch(object slot: Int) {
        if objects[slot].isHashed {
            objects[slot].isHashed = false
            uncount(slot)
            listUnhashed(object: slot)
        }
        if listsChanges, !objects[slot].isListed {
            objects[slot].isListed = true
            changes.objects.append(slot)
        }
        noteUnwritten(slot)
    }

    /// Adds a living object without fields.
    mutating func makeObject(model: Bytes, id: Bytes, seq: Seq) -> Int {
        let slot = objects.insert(model: model, id: id, seq: seq)
        listUnhashed(object: slot)
        touch(object: slot)
        return slot
    }

    mutating func forget(object slot: Int) {
        if objects[slot].isHashed { uncount(slot) }
        if listsChanges { changes.forgottenObjects.append(objects[slot].key) }
        noteRemoved(slot)
        objects.remove(slot)
    }

    /// Adds an object or tombstone to the sums. `isHashed` is true while it is in them.
    mutating func count(_ slot: Int, digest: UInt64) {
        objects[slot].digest = digest
        objects[slot].isHashed = true
        digestSum &+= digest
        objects[slot].countedBytes = 0
        guard objects[slot].state == .alive else { return }
        objects[slot].countedBytes = Int32(clamping: objects[slot].countableBytes)
        livingObjects += 1
        objectBytes += Int(objects[slot].countedBytes)
    }

    /// Subtracts an object or tombstone from the sums.
    private mutating func uncount(_ slot: Int) {
        let bytes = Int(objects[slot].countedBytes)
        digestSum &-= objects[slot].digest
        if bytes > 0 { livingObjects -= 1 }
        objectBytes -= bytes
    }

    mutating func touch(site: Site, at index: Dictionary<Site, SiteState>.Index) {
        if sites.values[index].isHashed {
            sites.values[index].isHashed = false
            digestSum &-= sites.values[index].digest
            listUnhashed(site: site)
        }
        if listsChanges, !sites.values[index].isListed {
            sites.values[index].isListed = true
            changes.sites.append(site)
        }
        if source != nil { unwritten.sites.insert(site) }
    }

    mutating func forget(site: Site) {
        guard let old = sites.removeValue(forKey: site) else { return }
        if old.isHashed { digestSum &-= old.digest }
        if listsChanges { changes.forgottenSites.append(site) }
        if source != nil { unwritten.sites.insert(site) }
        if old.end > .none { endedSites -= 1 }
        countLost(old.lost.count, 0, of: site)
    }

    /// Replaces the lost texts of a site.
    mutating func setLost(_ lost: LostTexts, of site: Site, at index: Dictionary<Site, SiteState>.Index) {
        countLost(sites.values[index].lost.count, lost.count, of: site)
        sites.values[index].lost = lost
    }

    private mutating func countLost(_ before: Int, _ after: Int, of site: Site) {
        lostCount += after - before
        if after > 0 { losingSites.insert(site) } else if before > 0 { losingSites.remove(site) }
    }

    /// Lists an object for the next digest. If digests are not requested, the list is rebuilt once at least half of it
    /// must be obsolete.
    private mutating func listUnhashed(object slot: Int) {
        unhashedObjects.append(slot)
        guard unhashedObjects.count > 2 * objects.slots.count else { return }
        unhashedObjects = objects.slots.indices.filter { objects[$0].state != .free && !objects[$0].isHashed }
    }

    /// Lists a site for the next digest. The limit uses the capacity because a dictionary keeps it: rebuilding stays
    /// rare even if most sites have been forgotten.
    mutating func listUnhashed(site: Site) {
        unhashedSites.append(site)
        guard unhashedSites.count > 2 * sites.capacity else { return }
        unhashedSites = sites.compactMap { $0.value.isHashed ? nil : $0.key }
    }

    /// Drops the data that only digests and the horizon need. A draft computes neither.
    mutating func dropBookkeeping() {
        digestSum = 0
        unhashedObjects = []
        agingObjects = AgingQueue()
    }

    // MARK: The horizon

    /// Drops everything at or below the horizon that no splice can need any more: tombstones, ended sites, marks of
    /// lost texts, and the history of texts.
    mutating func forget() {
        let horizon = horizon
        guard horizon > .none else { return }
        while let (seq, slot) = agingObjects.pop(upTo: horizon) {
            switch objects[slot].state {
            case .tombstone where objects[slot].seq == seq: forget(object: slot)
            case .alive: settle(slot, below: horizon)
            default: break
            }
        }
        forgetStored(upTo: horizon)
        while let (seq, site) = agingSites.pop(upTo: horizon) {
            if sites[site]?.end == seq { forget(site: site) }
        }
        for site in losingSites {
            guard let index = sites.index(forKey: site) else { continue }
            var lost = sites.values[index].lost
            guard lost.forget(upTo: horizon) else { continue }
            touch(site: site, at: index)
            setLost(lost, of: site, at: index)
        }
    }
}
