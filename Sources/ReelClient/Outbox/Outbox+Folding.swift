internal import ReelCore

extension Outbox {
    /// Returns true if events of this site must be passed to `folded`.
    func owns(_ site: Site) -> Bool {
        site == self.site || formerSites.contains(site)
    }

    /// Called when the own fold has processed an event of an own site. Returns true if the event was in this queue.
    ///
    /// - Parameters:
    ///   - seq: the seq of the event.
    ///   - content: the bytes of the event as its author sent them.
    ///   - base: the last seq folded, as the base of events that are sent again under a new site.
    @discardableResult
    mutating func folded(
        _ author: EventID,
        seq: Seq,
        _ outcome: Outcome,
        content: [UInt8],
        base: Seq,
        nowMs: Int64
    ) -> Bool {
        let wasQueued = index(of: author) != nil
        switch outcome {
        case .applied: return consumed(author, .applied(seq), content)
        case .rejected(let code): return consumed(author, .rejected(code, seq), content)
        case .gap: missed(author, seq: seq, nowMs: nowMs)
        case .stale: wasStale(author, seq: seq, base: base)
        case .tooManySites:
            guard let index = index(of: author), lies(entries[index], atOrBelow: seq) else { break }
            forgetAcks(from: index)
            rewind()
            waitForRoom()
        case .foreign:
            guard let index = index(of: author), lies(entries[index], atOrBelow: seq) else { break }
            forgetAcks(from: index)
            foreignSites.insert(author.site)
            rewind()
        case .duplicate, .seed, .barrier, .void, .stopped: break
        }
        return wasQueued
    }

    /// The last event of a site that a state has consumed. Its seq is nil if it was in another log.
    typealias LastConsumed = (op: Op, seq: Seq?)

    /// Called when a snapshot has replaced the own fold. Acked events up to `seq` that it does not cover were not
    /// consumed. For each event that it covers, call `resolve` once it is known whose event has the op.
    mutating func bootstrapped(consumed: (Site) -> LastConsumed?, seq: Seq) {
        cover(by: consumed)
        restart(consumed: consumed, seq: seq)
    }

    private mutating func restart(consumed: (Site) -> LastConsumed?, seq: Seq) {
        let unconsumed = entries.firstIndex { $0.covered == nil && ($0.acked.map { $0 <= seq } ?? false) }
        let isCloned = consumed(site).map { $0.op >= nextOp } ?? false
        // States that follow each other must not make the queue wait for its answers each time.
        guard unconsumed != nil || isCloned || conflicting != nil else { return }
        if let unconsumed { forgetAcks(from: unconsumed) }
        conflicting = nil
        if isCloned { takeNewSite() }
        rewind()
    }

    /// Called when another log has replaced the old one. Events that the new version vector covers were consumed. The
    /// rest is sent again on the new state, except for events that depend on the state that their author saw.
    mutating func epochChanged(consumed: (Site) -> LastConsumed?, seq: Seq) {
        // No node can tell the content of an event of the former log.
        removeAll { entry in
            guard let author = entry.author, let last = consumed(author.site) else { return nil }
            return last.op >= author.op ? .consumed(nil) : nil
        }
        restart(consumed: consumed, seq: .max)
        leaveEndedSites { site in consumed(site).map { KnownSite(op: $0.op, seq: .none, isForeign: false) } }
        leaveSitesThatFellBack(consumed)
        let error = ReelError(.epochChanged, "it depends on seqs of a log that has ended")
        removeAll { $0.author == nil && $0.event.dependsOnBase ? .failed(error) : nil }
        for index in entries.indices {
            entries[index].base = seq
            setCovered(nil, at: index)
            // The former log has not consumed the event. In the new log nothing was sent before this moment, and no
            // copy of a publish to the former log can reach it.
            if entries[index].author != nil { entries[index].firstSent = position?.moment }
            entries[index].isResent = false
            guard entries[index].event.dependsOnBase else {
                write(.put(entries[index]))
                continue
            }
            notify(.settled(number: entries[index].number, .failed(error)))
            replace(at: index, by: entries[index].event.filler)
        }
        rewind()
    }

    /// Leaves the sites of which the new log knows less than this device. The next op of such a site would follow a gap
    /// that cannot be filled, so its waiting events are sent under a new site.
    private mutating func leaveSitesThatFellBack(_ consumed: (Site) -> LastConsumed?) {
        var next: [Site: Op] = [site: nextOp]
        for entry in entries.reversed() {
            if let author = entry.author { next[author.site] = author.op }
        }
        for (former, op) in next where op != (consumed(former)?.op ?? -1) + 1 {
            if former == site { changeSite() }
            for index in entries.indices where entries[index].author?.site == former {
                takeBackOp(at: index)
            }
        }
    }

    // MARK: Outcomes

    /// Settles the entry of an event that was consumed. Returns false if the event was not in this queue.
    private mutating func consumed(_ author: EventID, _ outcome: PublishOutcome, _ content: [UInt8]) -> Bool {
        if conflicting == author { conflicting = nil }
        if let index = index(of: author) {
            if entries[index].event.encoded(base: entries[index].base, author: author) == content {
                remove(at: index, outcome)
                return true
            }
            anotherEventHasOp(ofEntryAt: index)
        } else if author.site == site, author.op >= nextOp {
            takeNewSite()
        }
        return false
    }

    /// Called when another device has used the site of an entry: its event has the op.
    mutating func anotherEventHasOp(ofEntryAt index: EntryList.Index) {
        let former = entries[index].author?.site
        takeBackOp(at: index)
        if former == site { takeNewSite() } else { refuseSplices() }
        rewind()
    }

    /// Takes a new site for all later events. A device restored from a backup and its original use the same site.
    /// Events that were handed over under the old site and may be in the log stay there until the fold shows whose
    /// event was consumed. If they were moved at once, they could be applied twice.
    private mutating func takeNewSite() {
        let was = site
        changeSite()
        notify(.newSite(was: was, now: site))
        refuseSplices()
    }

    /// Refuses the waiting splices after a change of the site: they may count on text that this device wrote under the
    /// former site.
    /// - Parameter seq: splices with at least this base are kept, as long as no earlier splice was refused. A splice
    ///   after a refused one may count on its text.
    mutating func refuseSplices(madeBelow seq: Seq = .max) {
        let error = ReelError(.stale, "it counts on what this device has written under another site")
        var refusesAll = false
        removeAll { entry in
            guard entry.author == nil, entry.event.hasSplices, refusesAll || entry.base < seq else { return nil }
            refusesAll = true
            return .failed(error)
        }
    }

    mutating func changeSite() {
        formerSites.insert(site)
        repeat { site = Site.random(using: &random) } while formerSites.contains(site)
        nextOp = 0
        write(.site(site, next: 0))
    }

    /// Called when the log holds the op after a gap, so that it will never be consumed at this seq. Sending restarts at
    /// the gap, unless the op was sent again already.
    private mutating func missed(_ author: EventID, seq: Seq, nowMs: Int64) {
        guard let index = index(of: author), entries[index].acked != nil, lies(entries[index], atOrBelow: seq) else {
            return
        }
        forgetAcks(from: entries.startIndex)
        sendAgain(afterMs: 0, nowMs: nowMs)
    }

    /// Called when the site never began, because its first event was too old. The horizon only rises, so the fold will
    /// never consume that event. All events of the site move to a new site, with two exceptions. An event that depends
    /// on its base is refused. An event that the site may have consumed before it was retired and forgotten is
    /// `unknown`.
    private mutating func wasStale(_ author: EventID, seq: Seq, base: Seq) {
        guard let index = index(of: author), lies(entries[index], atOrBelow: seq) else { return }
        let old = author.site
        if site == old { changeSite() }
        let error = ReelError(.stale, "it was made on a state that is older than the stream's history reaches")
        var losesText = false
        var outcomes: [Int64: PublishOutcome] = [:]
        for index in entries.indices where entries[index].author?.site == old {
            let event = entries[index].event
            if !event.isInternal, position?.mayHaveForgotten(since: entries[index].firstSent) == true {
                losesText = losesText || event.namesText
                outcomes[entries[index].number] = .unknown(Self.forgotten)
            } else if event.dependsOnBase {
                losesText = losesText || event.namesText
                outcomes[entries[index].number] = .failed(error)
            } else {
                entries[index].base = base
                takeBackOp(at: index)
            }
        }
        removeAll { outcomes[$0.number] }
        if losesText { refuseSplices() }
        rewind()
    }

    /// Returns true if the last known seq of the entry is at most `seq`, so that it was not sent again since.
    private func lies(_ entry: Entry, atOrBelow seq: Seq) -> Bool {
        entry.acked.map { $0 <= seq } ?? true
    }
}
