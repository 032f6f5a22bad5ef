/// The state of one stream: the pure function that turns events, in order, into objects. The same on every node and
/// client, whatever their settings.
///
/// A value: a copy shares its storage until one of both changes. It has no clock and reads nothing from outside. Who
/// holds one tells it every seq of the partition, in order: events by `apply`, all others by `advance`, so that `seq`
/// says up to where the state is true.
public struct Fold: Sendable {
    /// The version of the rules.
    public static let version: Int64 = 1

    /// The stream whose events these are.
    public let stream: StreamName
    /// The partition that the stream lies in.
    public let partition: Int
    /// The log that the seqs count in.
    public let epoch: Epoch
    /// The last seq of the partition that has been folded; −1: none.
    public internal(set) var seq = Seq.none
    /// The epoch that follows, once the end of this one was folded.
    public internal(set) var next: Epoch?
    /// How many events were consumed.
    public internal(set) var consumed: Int64 = 0
    /// The seqs of every 4,096th consumed event, the last 16, oldest first.
    public internal(set) var marks: [Seq] = []

    var objects = ObjectTable()
    /// The seq of the last barrier that retired sites; −1: none has.
    public internal(set) var retired = Seq.none
    var sites: [Site: SiteState] = [:]
    /// The number of sites that have ended and are not forgotten yet.
    public internal(set) var endedSites = 0
    /// The sites that have lost fields.
    var losingSites: Set<Site> = []
    /// The number of lost fields of all sites.
    var lostCount = 0
    /// The slots of tombstones and spliced texts.
    var agingObjects = AgingQueue<Int>()
    var agingSites = AgingQueue<Site>()

    /// The sum of all line hashes that are known.
    var digestSum: UInt64 = 0
    /// The number of living objects, as of the last reading of the digest.
    public internal(set) var livingObjects = 0
    /// The size of the living objects as of the last reading of the digest, in bytes: model, id, and the fields as
    /// canonical JSON. Histories of texts do not count.
    public internal(set) var objectBytes = 0
    /// What is not in the sum; what is gone or hashed by now may stand there too, or twice.
    var unhashedObjects: [Int] = []
    var unhashedSites: [Site] = []
    /// Whether the fold lists what it changes, for `takeChanges`.
    let listsChanges: Bool
    var changes = Changes()

    /// A stream that nobody wrote yet. With `listsChanges` the fold keeps a list of the rows that change, for
    /// `takeChanges`.
    public init(stream: StreamName, partition: Int, epoch: Epoch, listsChanges: Bool = false) {
        self.stream = stream
        self.partition = partition
        self.epoch = epoch
        self.listsChanges = listsChanges
    }

    /// What is older than this seq is history for nobody: the oldest of 16 marks, −1 as long as there are fewer.
    public var horizon: Seq {
        marks.count == Limits.marks ? marks[0] : .none
    }

    /// The seqs up to this one hold nothing more that changes the state: other streams' events, void records.
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

    /// Ends all sites whose last consumed event is at or below the seq `before`.
    private mutating func retire(before: Seq, at seq: Seq) {
        retired = seq
        for site in sites.keys {
            guard let place = sites.index(forKey: site), sites.values[place].end == .none,
                sites.values[place].seq <= before
            else { continue }
            touch(site: site, at: place)
            end(site, at: place, seq: seq)
        }
    }

    /// Ends a site.
    mutating func end(_ site: Site, at index: Dictionary<Site, SiteState>.Index, seq: Seq) {
        if sites.values[index].end == .none { endedSites += 1 }
        sites.values[index].end = seq
        agingSites.push(site, at: seq)
    }

    // MARK: What has changed

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
    }

    /// Makes a living object.
    mutating func makeObject(model: Bytes, id: Bytes, seq: Seq) -> Int {
        let slot = objects.insert(model: model, id: id, seq: seq)
        listUnhashed(object: slot)
        touch(object: slot)
        return slot
    }

    mutating func forget(object slot: Int) {
        if objects[slot].isHashed { uncount(slot) }
        if listsChanges { changes.forgottenObjects.append(objects[slot].key) }
        objects.remove(slot)
    }

    /// Adds an object or tombstone to the sums. `isHashed` says that it is in them.
    mutating func count(_ slot: Int, digest: UInt64) {
        objects[slot].digest = digest
        objects[slot].isHashed = true
        digestSum &+= digest
        objects[slot].countedBytes = 0
        guard objects[slot].state == .alive else { return }
        let bytes = objects[slot].key.count - 1 + objects[slot].size
        objects[slot].countedBytes = Int32(clamping: bytes)
        livingObjects += 1
        objectBytes += Int(objects[slot].countedBytes)
    }

    /// Takes an object or tombstone out of the sums.
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
    }

    mutating func forget(site: Site) {
        guard let old = sites.removeValue(forKey: site) else { return }
        if old.isHashed { digestSum &-= old.digest }
        if listsChanges { changes.forgottenSites.append(site) }
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

    /// The next digest has to hash it. If nobody asks for one, the list is made anew once half of it must be useless.
    private mutating func listUnhashed(object slot: Int) {
        unhashedObjects.append(slot)
        guard unhashedObjects.count > 2 * objects.slots.count else { return }
        unhashedObjects = objects.slots.indices.filter { objects[$0].state != .free && !objects[$0].isHashed }
    }

    /// As for objects. A dictionary keeps its capacity, so this is as rare where most sites have been forgotten.
    mutating func listUnhashed(site: Site) {
        unhashedSites.append(site)
        guard unhashedSites.count > 2 * sites.capacity else { return }
        unhashedSites = sites.compactMap { $0.value.isHashed ? nil : $0.key }
    }

    /// Forgets what digests and the horizon will ask for: of a draft nobody does.
    mutating func dropBookkeeping() {
        digestSum = 0
        unhashedObjects = []
        agingObjects = AgingQueue()
    }

    // MARK: The horizon

    /// Forgets everything that no splice can need any more: tombstones, ended sites, marks of lost texts, and the
    /// history of texts.
    mutating func forget() {
        let horizon = horizon
        guard horizon > .none else { return }
        while let (seq, slot) = agingObjects.pop(upTo: horizon) {
            switch objects[slot].state {
            case .tombstone where objects[slot].seq == seq: forget(object: slot)
            case .alive: objects[slot].settle(below: horizon)
            default: break
            }
        }
        while let (seq, site) = agingSites.pop(upTo: horizon) {
            if sites[site]?.end == seq { forget(site: site) }
        }
        for site in losingSites {
            guard let place = sites.index(forKey: site) else { continue }
            var lost = sites.values[place].lost
            guard lost.forget(upTo: horizon) else { continue }
            touch(site: site, at: place)
            setLost(lost, of: site, at: place)
        }
    }
}
