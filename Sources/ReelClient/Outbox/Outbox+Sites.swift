internal import ReelCore

// The sites of the queue, compared with the fold: a site of another user is left, and a new site waits for room.
extension Outbox {
    /// An entry of the stream's version vector.
    struct KnownSite: Sendable {
        /// The last op that was consumed, and its seq.
        var op: Op
        var seq: Seq
        /// True if the site began under another user name than events of this device get now.
        var isForeign: Bool
        /// True if the site has ended and consumes no more events.
        var isEnded = false
    }

    /// The outcome of the events that were handed over under a site that was left.
    struct LeftSite: Sendable, Equatable {
        var site: Site
        /// Events that the stream has.
        var consumed = 0
        /// Events that are sent under another site.
        var moved = 0
        /// Events that are never sent again, because the stream may have them or not.
        var unknown = 0
    }

    /// The maximum random pause before a device uses new room, so that waiting devices do not all try at the same
    /// moment.
    static let roomSpreadMs: Int64 = 10_000

    /// Called when events get another user name from now on. Ops that were given before may be in a log under the
    /// former name.
    mutating func userChanged() {
        firstOps = [:]
    }

    /// Leaves the sites of the queue that belong to another user. An event of such a site is `foreign` for every fold.
    ///
    /// Call it when the fold has reached the head that the node named in answer to the present subscription.
    mutating func leaveForeignSites(_ known: (Site) -> KnownSite?) {
        guard !entries.isEmpty || nextOp > 0 else { return }
        for left in formerSites.union([site]).subtracting(leftSites) {
            let state = known(left)
            // A site that this run has begun has the name that nodes give now.
            let isForeign = state?.isForeign == true && firstOps[left] == nil
            if isForeign || foreignSites.contains(left) { leave(left, state) }
        }
    }

    /// Leaves a site of another user. An event that only the present user can have sent was never consumed, and is sent
    /// under another site. Any other event may still be on its way into the log under the former name. The version
    /// vector proves only that it was consumed. It proves that the event will not be consumed only if the site has
    /// ended.
    private mutating func leave(_ left: Site, _ known: KnownSite?) {
        let firstOp = firstOps[left] ?? .max
        let error = ReelError(.foreign, "it was sent under another user, and whether it arrived cannot be told")
        let result = leave(left, known) { entry, op in
            if op >= firstOp { return .moved }
            guard let known, op <= known.op || known.isEnded else { return .unknown(error) }
            return op <= known.op ? .consumed(op == known.op ? known.seq : nil) : .moved
        }
        notify(.leftSite(result))
    }

    /// The outcome of an event that was handed over under a site which the queue leaves.
    enum Leaving {
        case moved
        case consumed(Seq?)
        case unknown(ReelError)
    }

    /// Leaves a site, and settles or moves each event that was handed over under it.
    mutating func leave(
        _ left: Site,
        _ known: KnownSite?,
        deciding: (Entry, Op) -> Leaving
    ) -> LeftSite {
        leftSites.insert(left)
        firstOps[left] = nil
        if site == left { changeSite() }
        if conflicting?.site == left { conflicting = nil }
        var result = LeftSite(site: left)
        var losesText = false
        var outcomes: [Int64: PublishOutcome] = [:]
        for index in entries.indices {
            let entry = entries[index]
            guard let author = entry.author, author.site == left else { continue }
            if entry.event.isInternal {
                // The op of a filler is not needed any more.
                losesText = losesText || entry.event.namesText
                outcomes[entry.number] = .superseded
                continue
            }
            switch deciding(entry, author.op) {
            // It is not known yet if the event with the op is this one.
            case .consumed where entry.covered != nil: break
            case .moved:
                result.moved += 1
                takeBackOp(at: index)
            case .consumed(let seq):
                result.consumed += 1
                outcomes[entry.number] = .consumed(seq)
            case .unknown(let error):
                result.unknown += 1
                losesText = losesText || entry.event.namesText
                outcomes[entry.number] = .unknown(error)
            }
        }
        removeAll { outcomes[$0.number] }
        refuseSplices(madeBelow: losesText ? .max : known?.seq ?? .none)
        rewind()
        return result
    }

    /// Returns false if the next event would begin a site in a stream that has no room for one: no fold would consume
    /// it. `hasRoom`: true if the fold allows another site.
    mutating func mayBegin(knows: (Site) -> Bool, hasRoom: Bool, nowMs: Int64) -> Bool {
        let index = index(behind: sentThrough)
        guard index < entries.endIndex, !knows(entries[index].author?.site ?? site) else { return true }
        guard hasRoom else {
            waitForRoom()
            return false
        }
        if waitsForRoom {
            waitsForRoom = false
            notBeforeMs = max(notBeforeMs, nowMs + Int64.random(in: 0..<Self.roomSpreadMs, using: &random))
        }
        return true
    }

    mutating func waitForRoom() {
        if !waitsForRoom { notify(.held(ReelError(.tooManySites, "the stream has all the sites that it may have"))) }
        waitsForRoom = true
    }

    // MARK: The end

    /// Removes the events that were never handed over.
    mutating func discard() {
        removeAll { $0.author == nil ? .superseded : nil }
    }
}
