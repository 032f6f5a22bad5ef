internal import ReelCore

extension StreamState {
    /// Places the queue's entries that no longer wait: their splices are expressed for the present state, and count on
    /// it from now on. Base, splices and place are committed as one; without that commit the entries wait again.
    ///
    /// Each splice is expressed among the earlier ones as they were made, not as they are expressed: offsets may count
    /// text that others have deleted meanwhile, and an expressed splice keeps no place in such text. For the same
    /// reason all splices that follow in the queue are expressed in the same step, also those that still wait.
    func placeReleased() {
        guard let first = outbox.released.keys.min(), let fold = view?.fold else { return }
        let released = outbox.released
        outbox.released = [:]
        var index = outbox.index(behind: first - 1)
        var overlay = Overlay(of: outbox.entries[..<index], site: outbox.site, over: fold, stream: name)
        while index < outbox.entries.endIndex {
            var entry = outbox.entries[index]
            if entry.author == nil, entry.event.hasSplices {
                let isInVain = released[entry.number] == true
                let waits = entry.waits?.isEmpty == false && !isInVain
                if !isInVain, let event = overlay.rebased(entry.event, base: entry.base, over: fold, waits: waits) {
                    outbox.place(event, base: fold.seq, waits: waits, at: index)
                } else if entry.waits != nil {
                    outbox.refuseUnplaced(at: index, base: fold.seq)
                    entry = outbox.entries[index]
                }
            }
            overlay.append(entry, over: fold)
            index += 1
        }
    }
}
