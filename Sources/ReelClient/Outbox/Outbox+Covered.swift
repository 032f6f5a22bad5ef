internal import ReelCore

// A snapshot or a delta covers ops of this device without their content. A device that was restored from a backup, and
// its original, use the same site, so that the event of such an op can be that of the other device.
extension Outbox {
    /// The fact that decides about a covered entry.
    enum CoveredFact: Sendable, Equatable {
        /// The log has consumed this event, with this outcome.
        case own(PublishOutcome)
        /// The log has consumed another event under the same site and op.
        case other
        /// No node can tell the content of the event.
        case unknown
    }

    /// Notes the entries whose ops a folded state covers. They are not laid over it, and nothing is sent before each of
    /// them is resolved: later events may depend on them.
    ///
    /// - Parameter consumed: the last event of a site that the state has consumed.
    mutating func cover(by consumed: (Site) -> LastConsumed?) {
        for index in entries.indices {
            guard let author = entries[index].author else { continue }
            let last = consumed(author.site).flatMap { $0.op >= author.op ? $0 : nil }
            setCovered(last.map { CoveredOp(seq: $0.op == author.op ? $0.seq : nil) }, at: index)
        }
        // Another device's event would have the same effect as a filler.
        removeAll { $0.event.isInternal ? $0.covered.map { .consumed($0.seq) } : nil }
    }

    /// Settles a covered entry, or takes its op back. Without effect on an entry that is not covered.
    ///
    /// - Parameters:
    ///   - number: the number of the entry.
    ///   - fact: whose event has the op.
    mutating func resolve(_ number: Int64, _ fact: CoveredFact) {
        guard let index = index(of: number), let covered = entries[index].covered else { return }
        switch fact {
        case .own(let outcome): remove(at: index, outcome)
        case .unknown: remove(at: index, .consumed(covered.seq))
        case .other: anotherEventHasOp(ofEntryAt: index)
        }
    }

    mutating func setCovered(_ covered: CoveredOp?, at index: EntryList.Index) {
        coveredCount += (covered == nil ? 0 : 1) - (entries[index].covered == nil ? 0 : 1)
        entries[index].covered = covered
    }
}
