internal import ReelCore

extension StreamState {
    /// Rebases the splices of the entries that no longer wait. Their offsets then count the present text. The entries'
    /// new base and splices are committed in the same turn. If the process ends before that commit, the entries wait
    /// again.
    ///
    /// Each splice is rebased among the earlier ones as they were made. All later splices of the queue are rebased in
    /// the same step. An offset may count text that other devices have deleted meanwhile, and a rebased splice has no
    /// place in such text.
    ///
    /// A splice that has not waited keeps its base if it may count on a text that was lost after that base. The fold
    /// has to find such a splice stale.
    func placeReleased() {
        guard let first = outbox.released.keys.min(), let fold = view?.fold else { return }
        let released = outbox.released
        outbox.released = [:]
        var index = outbox.index(behind: first - 1)
        var overlay = Overlay(
            of: outbox.entries[..<index],
            site: outbox.site,
            over: fold,
            stream: name,
            isComplete: sync.isComplete
        )
        while index < outbox.entries.endIndex {
            var entry = outbox.entries[index]
            if entry.author == nil, entry.event.hasSplices {
                let isInVain = released[entry.number] == true
                let waits = entry.waits?.isEmpty == false && !isInVain
                let known = waits ? nil : entry.waits == nil ? entry.base : fold.seq
                if !isInVain, let event = overlay.rebased(entry.event, base: entry.base, over: fold, known: known) {
                    outbox.place(event, base: fold.seq, waits: waits, at: index)
                } else if entry.waits != nil {
                    outbox.refuseUnplaced(at: index, base: fold.seq)
                    entry = outbox.entries[index]
                }
            }
            overlay.append(entry, over: fold)
            outbox.entries.formIndex(after: &index)
        }
    }
}
