internal import ReelCore

// The upkeep of the store in small steps, so that no other work waits for it: replaced generations are removed, the
// rows of a delta move to the generation below it, and the file shrinks.
extension SyncClient {
    /// The pause between two steps.
    private static let upkeepMs: Int64 = 10

    /// Schedules the next step, unless one is scheduled.
    func planUpkeep() {
        guard upkeepTimer == nil, !isClosed else { return }
        upkeepTimer = after(Self.upkeepMs) { client in
            client.upkeepTimer = nil
            client.upkeep()
        }
    }

    private func upkeep() {
        guard let store, !isClosed else { return }
        do throws(ReelError) {
            if !hasLookedForUnused {
                hasLookedForUnused = true
                try store.findUnused()
            }
            if let stream = opened.values.first(where: { $0.isLayered && !$0.isDirty && !isLoadingDelta($0) }) {
                do throws(ReelError) {
                    try mergeLayers(of: stream, store)
                } catch {
                    guard error.isDamage else { throw error }
                    try dropState(of: stream, error)
                    markDirty(stream)
                }
                return planUpkeep()
            }
            if try store.removeUnused() || store.releaseSpace() { planUpkeep() }
        } catch {
            fail(error)
        }
    }

    /// Moves a part of the rows in the upper generation of a stream to the lower one.
    func mergeLayers(of stream: StreamState, _ store: DeviceStore) throws(ReelError) {
        guard let objects = stream.view?.fold.storedObjects else { return }
        let layers = try store.merge(stream.row, layers: objects.layers)
        objects.refresh()
        guard layers != objects.layers else { return }
        try stream.view?.withFold { (fold) throws(ReelError) in
            fold.replaceSource(by: StoredObjects(store.storage, layers: layers))
        }
        content.change { $0[stream.name]?.layers = layers }
    }
}
