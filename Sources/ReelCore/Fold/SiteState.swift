/// What a stream knows of one site: an entry of its version vector.
public struct SiteState: Sendable {
    /// The last consumed op.
    public internal(set) var op: Op = -1
    /// The seq of the last consumed event.
    public internal(set) var seq = Seq.none
    /// The texts of rejected events, on which offsets of the site's later events may count.
    package internal(set) var lost = LostTexts()
    /// Who writes here, as it stands between the quotes of canonical JSON; nil: no name.
    public internal(set) var by: [UInt8]?
    /// The seq with which the site ended; −1: it goes on.
    public internal(set) var end = Seq.none

    /// What its line adds to the digest of the stream, while `isHashed`.
    var digest: UInt64 = 0
    var isHashed = false
    /// Whether it stands in the list of changes.
    var isListed = false

    func isWritten(by name: Bytes?) -> Bool {
        guard let by, let name else { return by == nil && name == nil }
        return by.withUnsafeBytes { $0.equals(name) }
    }
}
