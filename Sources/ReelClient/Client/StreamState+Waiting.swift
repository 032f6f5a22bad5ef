internal import ReelCore

extension StreamState {
    /// Places the queue's entries that no longer wait: their splices are expressed for the present state, and count on
    /// it from now on. Base, splices and place are committed as one; without that commit the entries wait again.
    func placeReleased() {
        guard !outbox.released.isEmpty, let fold = view?.fold else { return }
        let released = outbox.released
        outbox.released = [:]
        guard let first = released.keys.min(), let last = released.keys.max() else { return }
        var index = outbox.index(behind: first - 1)
        let entries = outbox.entries[..<index]
        var overlay = Overlay(of: entries, site: outbox.site, over: fold, stream: name)
        while index < outbox.entries.endIndex, outbox.entries[index].number <= last {
            let entry = outbox.entries[index]
            if let isInVain = released[entry.number], entry.waits != nil {
                if !isInVain, let event = overlay.rebased(entry.event, base: entry.base, over: fold) {
                    outbox.place(event, base: fold.seq, at: index)
                } else {
                    outbox.refuseUnplaced(at: index, base: fold.seq)
                }
            }
            overlay.append(outbox.entries[index], over: fold)
            index += 1
        }
    }
}
