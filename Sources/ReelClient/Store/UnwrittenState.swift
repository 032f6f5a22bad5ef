internal import ReelCore

/// The rows of a stream's folded state that the store lacks. Events that are stored behind the state stand in for them
/// until they are due.
struct UnwrittenState {
    /// Names of rows are collected up to this number, or to half of the state if that is more.
    private static let rowsMin = 4_096

    /// Keys of the objects whose rows differ from the stored ones.
    private(set) var objects: Set<[UInt8]> = []
    /// The sites whose rows differ from the stored ones.
    private(set) var sites: Set<Site> = []
    /// The stored rows are of no use: all are written.
    private(set) var isWhole = false
    /// The rows are written with the next commit.
    var isDue = false

    /// Adds what has changed in a fold.
    mutating func add(_ changes: ReelCore.Changes, of fold: Fold) {
        guard !isWhole else { return }
        objects.formUnion(changes.forgottenObjects)
        for slot in changes.objects { objects.insert(fold.key(ofObject: slot)) }
        sites.formUnion(changes.forgottenSites)
        sites.formUnion(changes.sites)
        // So many rows lie on most pages of the file.
        if objects.count + sites.count > max(Self.rowsMin, fold.entryCount / 2) { replaceAll() }
    }

    /// The state is another one than that of the stored rows.
    mutating func replaceAll() {
        objects = []
        sites = []
        isWhole = true
    }
}
