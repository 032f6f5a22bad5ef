/// The state of one site in a stream: an entry of the stream's version vector.
public struct SiteState: Sendable {
    /// The last consumed op.
    public internal(set) var op: Op = -1
    /// The seq of the last consumed event.
    public internal(set) var seq = Seq.none
    /// The texts of rejected events, which offsets of the site's later events may count on.
    package internal(set) var lost = LostTexts()
    /// The author name of the site's events, escaped as in canonical JSON, without quotes; nil if they have no name.
    public internal(set) var by: [UInt8]?
    /// The seq at which the site ended; −1 while it has not ended.
    public internal(set) var end = Seq.none

    /// The hashes of the site's lines in the digest of the stream, valid while `isHashed`.
    var digest: UInt64 = 0
    var isHashed = false
    /// True if the site is in the list of changes.
    var isListed = false

    func isWritten(by name: Bytes?) -> Bool {
        guard let by, let name else { return by == nil && name == nil }
        return by.withUnsafeBytes { $0.equals(name) }
    }
}
