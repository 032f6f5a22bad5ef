/// The rows of a stream that have changed since the last call of `takeChanges`. Delete the forgotten rows before
/// writing the others: a forgotten key may exist again.
public struct Changes: Sendable {
    /// The slots of objects and tombstones with rows that must be written.
    public internal(set) var objects: [Int] = []
    /// The keys of objects that were removed completely.
    public internal(set) var forgottenObjects: [[UInt8]] = []
    /// The sites with rows that must be written.
    public internal(set) var sites: [Site] = []
    /// The sites that were removed completely.
    public internal(set) var forgottenSites: [Site] = []
}

extension Fold {
    /// Returns the changes since the last call; each slot and site occurs once. Empty without `listsChanges`.
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
