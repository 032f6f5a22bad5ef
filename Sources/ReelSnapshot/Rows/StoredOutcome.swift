import ReelCore

/// The outcome of an event, as the byte that the index stores.
struct StoredOutcome: Equatable {
    /// The index in `all` plus one; 0: not known, since an older version wrote the chunk.
    let code: UInt8

    /// The indices are stored: add new outcomes at the end only.
    static let all: [Outcome] =
        [.applied, .duplicate, .gap, .stale, .tooManySites, .foreign]
        + [.badBase, .stale, .deleted, .noObject, .guard, .type, .range, .tooLarge].map(Outcome.rejected)

    init(code: UInt8) {
        self.code = code
    }

    init(_ outcome: Outcome) {
        code = UInt8((Self.all.firstIndex(of: outcome) ?? -1) + 1)
    }

    /// The outcome; nil: not known.
    var outcome: Outcome? { code > 0 && code <= Self.all.count ? Self.all[Int(code) - 1] : nil }
}
