import ReelCore

/// What became of an event, in the byte that the index has for it.
struct StoredOutcome: Equatable {
    /// 0: it is not known, since an older version wrote the chunk.
    let code: UInt8

    /// The numbers are stored: a new one goes to the end.
    static let all: [Outcome] =
        [.applied, .duplicate, .gap, .stale, .tooManySites, .foreign]
        + [.badBase, .stale, .deleted, .noObject, .guard, .type, .range, .tooLarge].map(Outcome.rejected)

    init(code: UInt8) {
        self.code = code
    }

    init(_ outcome: Outcome) {
        code = UInt8((Self.all.firstIndex(of: outcome) ?? -1) + 1)
    }

    /// Nil where it is not known.
    var outcome: Outcome? { code > 0 && code <= Self.all.count ? Self.all[Int(code) - 1] : nil }
}
