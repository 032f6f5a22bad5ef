/// The rows of a stream that changed since they were last asked for. Forget first, then write: what was forgotten may
/// have come again.
public struct Changes: Sendable {
    /// Slots of objects and tombstones to be written.
    public internal(set) var objects: [Int] = []
    /// Keys of objects that are gone without a trace.
    public internal(set) var forgottenObjects: [[UInt8]] = []
    /// Sites to be written.
    public internal(set) var sites: [Site] = []
    /// Sites that are gone without a trace.
    public internal(set) var forgottenSites: [Site] = []
}

extension Fold {
    /// What has changed since the last call; each slot and site once. Empty without `listsChanges`.
    public mutating func takeChanges() -> Changes {
        var taken = changes
        changes = Changes()
        taken.objects.removeAll { slot in
            guard objects[slot].isListed else { return true }
            objects[slot].isListed = false
            return false
        }
        taken.sites.removeAll { site in
            guard let index = sites.index(forKey: site), sites.values[index].isListed else { return true }
            sites.values[index].isListed = false
            return false
        }
        return taken
    }
}
