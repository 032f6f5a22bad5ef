internal import ReelCore

/// The rows of a stream's folded state that the store lacks. Until the rows are due, the later events in the store
/// replace them.
struct UnwrittenState {
    /// The number of changed rows from which the whole state is written. If half of the state is more, that number
    /// applies.
    private static let rowsMin = 4_096

    /// The keys of the objects that differ from the stored rows.
    private(set) var objects: Set<[UInt8]> = []
    /// The sites that differ from the stored rows.
    private(set) var sites: Set<Site> = []
    /// True if the stored rows are of no use, so that all rows are written.
    private(set) var isWhole = false
    /// True if the rows must be written with the next commit.
    var isDue = false

    /// Adds the changes of a fold.
    mutating func add(_ changes: ReelCore.Changes, of fold: Fold) {
        guard !isWhole else { return }
        objects.formUnion(changes.forgottenObjects)
        for slot in changes.objects { objects.insert(fold.key(ofObject: slot)) }
        sites.formUnion(changes.forgottenSites)
        sites.formUnion(changes.sites)
        // This many changed rows touch most pages of the file, so writing all rows costs no more.
        if objects.count + sites.count > max(Self.rowsMin, fold.entryCount / 2) { replaceAll() }
    }

    /// Called when the state was replaced by another one than that of the stored rows.
    mutating func replaceAll() {
        objects = []
        sites = []
        isWhole = true
    }
}
