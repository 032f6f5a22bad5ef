internal import ReelCore

/// The queue of one stream's own events: from `publish` until the device's own fold has consumed them.
///
/// A pure machine. What must be durable comes out as `Write`s; whoever drives it commits them in one transaction before
/// anything that depends on them leaves the device: before `publish` returns, and before a parcel is sent.
///
/// An event gets its op when it is first handed to a connection, and keeps it: (site, op) is what makes it happen once,
/// however often it is sent. Until then it may be merged with its neighbour or cancel out with a later one. An ack says
/// that it is durable, not that it was consumed; so it stays here until the fold has met it.
struct Outbox: Sendable {
    /// One event that waits.
    struct Entry: Sendable, Equatable {
        /// Its place in the queue, which is also its row in the store.
        let number: Int64
        var event: Event
        var base: Seq
        /// Site and op, once it was handed over.
        var author: Event.Author?
        /// Where a gateway says it stands. Not stored: after a restart it is sent again.
        var acked: Seq?
        /// How far the device had folded when it first handed the event to a connection, under the present site and in
        /// the present epoch. nil: it has not, or an earlier version of the client has.
        var firstSent: FoldedMoment?
        /// The indices of the changes whose objects this device has held since the event was published.
        var held: [Int] = []
        /// The numbers of the entries whose rejection this entry waits for; nil: the entry does not wait.
        var waits: [Int64]?
        /// True if the entry was handed to a connection more than once, so that an earlier copy may still reach the
        /// log. Not stored: after a restart every entry with an op is handed over again.
        var isResent = false
    }

    /// A seq of an epoch, up to which a fold had come.
    struct FoldedMoment: Sendable, Equatable {
        var epoch: Epoch
        var seq: Seq
    }

    /// A change of what is stored.
    enum Write: Sendable, Equatable {
        case put(Entry)
        /// `isInStream`: the stream has the event, and did not reject it as far as is known.
        case remove(number: Int64, isInStream: Bool)
        case site(Site, next: Op)
    }

    /// What the app is to hear.
    enum Notice: Sendable, Equatable {
        case acked(number: Int64, seq: Seq)
        case settled(number: Int64, Fate)
        /// This device was cloned, or its site has ended: it goes on as another site.
        case newSite(was: Site, now: Site)
        /// A site of the queue belongs to another user or has ended: it is never used again.
        case leftSite(LeftSite)
        /// The queue waits for something that is not an event's fault.
        case held(ReelError)
        /// The gateway waits for an op that was consumed meanwhile: only another connection helps.
        case stuck
    }

    /// Two updates are merged only up to this many bytes, so that no limit of a gateway is passed by merging.
    static let mergeMaxBytes = 32 << 10

    /// The site that gives ops, and the next one.
    var site: Site
    var nextOp: Op
    /// Sites that events of the queue were handed over under before.
    var formerSites: Set<Site> = []
    /// Of each site the first op that was given under the present user, by this run: it and later ones were never sent
    /// under another one.
    var firstOps: [Site: Op] = [:]
    /// Sites of which the fold has said `foreign`.
    var foreignSites: Set<Site> = []
    /// Sites that are never used again.
    var leftSites: Set<Site> = []
    /// How far this device has folded. Set it before `folded`, `bootstrapped`, `epochChanged` and `nextBatch`.
    var position: FoldPosition?
    /// The stream has no room for another site, as far as the fold goes.
    var waitsForRoom = false
    var entries: ArraySlice<Entry> = []
    /// No entry behind this number has an op.
    var lastGiven: Int64 = 0
    var nextNumber: Int64 = 1
    var random: SeededGenerator

    // Of the present connection.
    var sentThrough: Int64 = 0
    /// Sent and not answered: each event gets one answer, also where its entry is gone.
    var inFlight = 0
    var inFlightBytes = 0
    /// Counts the times that sending began anew; `ref` of a publish, so that late answers to older ones are known.
    var generation: Int64 = 0
    /// Something of this generation was sent.
    var hasBegun = false
    var notBeforeMs: Int64 = 0
    var rewindsInARow = 0
    /// Nothing is sent until the fold has met this op: somebody else used it.
    var contested: Event.Author?
    /// Nothing is sent until the next connection or token.
    var isHeld = false

    private(set) var writes: [Write] = []
    private(set) var notices: [Notice] = []
    /// The numbers of the entries that name an object, in order.
    private(set) var touched: [ObjectKey: ArraySlice<Int64>] = [:]
    /// For each object that this device has not held: the number of changes in the queue that make or update it.
    private(set) var unseen: [ObjectKey: Int] = [:]
    /// The last objects whose insert and delete have cancelled each other, as a set and in order.
    var cancelled: Set<ObjectKey> = []
    var cancelledInOrder: ArraySlice<ObjectKey> = []
    /// The numbers of waiting entries, by the number of the entry that they wait for.
    var waiting: [Int64: [Int64]] = [:]
    /// The numbers of entries that no longer wait and are not rebased yet; true if the entry has waited in vain.
    var released: [Int64: Bool] = [:]

    /// The queue of a device that is new to the stream.
    init(seed: UInt64) {
        random = SeededGenerator(seed: seed)
        site = Site.random(using: &random)
        nextOp = 0
        writes = [.site(site, next: 0)]
    }

    /// The queue as it was stored, entries by number.
    init(site: Site, nextOp: Op, entries: [Entry], seed: UInt64) {
        random = SeededGenerator(seed: seed)
        self.site = site
        self.nextOp = nextOp
        self.entries = ArraySlice(entries)
        nextNumber = (entries.last?.number ?? 0) + 1
        formerSites = Set(entries.compactMap(\.author?.site))
        lastGiven = entries.last { $0.author != nil }?.number ?? 0
        for entry in entries { touch(entry, 1) }
        restoreWaits()
    }

    // MARK: What comes out

    /// What must be committed, in order; empties it.
    mutating func takeWrites() -> [Write] {
        defer { writes = [] }
        return writes
    }

    /// What happened since the last call, in order; empties it.
    mutating func takeNotices() -> [Notice] {
        defer { notices = [] }
        return notices
    }

    mutating func write(_ write: Write) {
        writes.append(write)
    }

    mutating func notify(_ notice: Notice) {
        notices.append(notice)
    }

    // MARK: Entries

    /// Where the first entry behind this number stands.
    func index(behind number: Int64) -> Int {
        var (low, high) = (entries.startIndex, entries.endIndex)
        while low < high {
            let middle = (low + high) / 2
            if entries[middle].number <= number { low = middle + 1 } else { high = middle }
        }
        return low
    }

    /// Where the entry of this site and op stands.
    func index(of author: Event.Author) -> Int? {
        if let first = entries.first?.author, first.site == author.site, author.op < first.op { return nil }
        if let first = entries.first?.author, first.site == author.site, author.op - first.op < entries.count {
            let guess = entries.startIndex + Int(author.op - first.op)
            if entries[guess].author == author { return guess }
        }
        return entries[..<self.index(behind: lastGiven)].firstIndex { $0.author == author }
    }

    mutating func remove(at index: Int, _ fate: Fate) {
        let entry = entries[index]
        touch(entry, -1)
        if index == entries.startIndex { entries.removeFirst() } else { entries.remove(at: index) }
        // What was removed in front is held until the rest is copied.
        if entries.isEmpty { entries = [] }
        write(.remove(number: entry.number, isInStream: fate.isApplied))
        notify(.settled(number: entry.number, fate))
        settled(entry.number, fate)
    }

    /// Removes the entries for which there is a fate, in one pass: each removal by itself moves all that stand behind.
    mutating func removeAll(_ fate: (Entry) -> Fate?) {
        var (kept, fates) = ([Entry](), [(Int64, Fate)]())
        for entry in entries {
            guard let fate = fate(entry) else {
                kept.append(entry)
                continue
            }
            touch(entry, -1)
            write(.remove(number: entry.number, isInStream: fate.isApplied))
            notify(.settled(number: entry.number, fate))
            if waiting[entry.number] != nil { fates.append((entry.number, fate)) }
        }
        if kept.count < entries.count { entries = kept[...] }
        for (number, fate) in fates { settled(number, fate) }
    }

    /// Takes the op of an entry back. The event was not consumed under it, and is sent as a new one of the present
    /// site.
    mutating func takeBackOp(at index: Int) {
        (entries[index].author, entries[index].acked, entries[index].firstSent) = (nil, nil, nil)
        entries[index].isResent = false
        write(.put(entries[index]))
    }

    /// Puts another event in the place of an entry's, which keeps its number and its op.
    mutating func replace(at index: Int, by event: Event) {
        put(event, held: [], at: index)
    }

    /// Replaces the event of an entry, and the indices of its held objects.
    mutating func put(_ event: Event, held: [Int], at index: Int) {
        touch(entries[index], -1)
        (entries[index].event, entries[index].held) = (event, held)
        touch(entries[index], 1)
        write(.put(entries[index]))
    }

    private mutating func touch(_ entry: Entry, _ count: Int) {
        for (place, change) in entry.event.changes.enumerated() {
            let key = ObjectKey(change)
            touched[key, default: []].set(entry.number, isIn: count > 0)
            if touched[key]?.isEmpty == true { touched[key] = nil }
            guard change.kind != .delete, !entry.held.contains(place) else { continue }
            let rest = (unseen[key] ?? 0) + count
            unseen[key] = rest > 0 ? rest : nil
        }
    }

    /// Notes that an entry was appended.
    mutating func noteAppended(_ entry: Entry) { touch(entry, 1) }
}

extension ArraySlice<Int64> {
    /// Inserts a number into this sorted list, or removes it.
    fileprivate mutating func set(_ number: Int64, isIn: Bool) {
        if isIn, last ?? .min < number {
            append(number)
            return
        }
        if !isIn, first == number {
            removeFirst()
            return
        }
        let place = firstIndex { $0 >= number } ?? endIndex
        let isThere = place < endIndex && self[place] == number
        if isIn, !isThere { insert(number, at: place) }
        if !isIn, isThere { remove(at: place) }
    }
}

/// An object that the queue names. Two names are the same if their bytes are.
struct ObjectKey: Hashable, Sendable {
    private let bytes: [UInt8]

    init(_ change: Change) { self.init(change.model, change.id) }

    init(_ name: ObjectName) { self.init(name.model, name.id) }

    private init(_ model: String, _ id: String) { bytes = Array(model.utf8) + [0] + Array(id.utf8) }
}
