package import ReelCore

/// A site of a stream in a listing.
package struct ListedSite: Equatable, Sendable {
    /// The site.
    package var site: Site
    /// The user of the site's first event; nil: none.
    package var by: String?
    /// The last consumed op.
    package var op: Op
    /// The seq of the last consumed event.
    package var seq: Seq
    /// The seq with which the site ended; −1: it has not ended.
    package var end: Seq
    /// The gateway's clock in the last consumed event, in milliseconds since 1970; nil: not known.
    package var atMs: Int64?

    /// A site without a time, from its entry in a fold.
    package init(_ site: Site, _ state: SiteState) {
        self.site = site
        by = state.by.map { $0.withUnsafeBytes { JSONText($0).string } }
        (op, seq, end) = (state.op, state.seq, state.end)
    }

    /// Returns the time since the last consumed event in milliseconds; nil: not known.
    package func idleMs(nowMs: Int64) -> Int64? { atMs.map { max(0, nowMs - $0) } }

    /// Writes the members of the site in a listing.
    ///
    /// - Parameters:
    ///   - object: The object to write to.
    ///   - head: The seq as of which the listing is.
    ///   - nowMs: The present time in milliseconds since 1970.
    package func write(to object: inout JSONObjectWriter, head: Seq, nowMs: Int64) {
        object.member("site", site.description)
        object.member("by", by)
        object.member("op", op)
        object.member("seq", seq)
        object.member("end", end)
        object.member("idle_seqs", head - seq)
        object.member("at") { Self.append(atMs, to: &$0) }
        object.member("idle_ms") { Self.append(idleMs(nowMs: nowMs), to: &$0) }
    }

    private static func append(_ number: Int64?, to bytes: inout [UInt8]) {
        if let number { bytes.append(integer: number) } else { bytes.append("null") }
    }

    /// Reads a site of a node's response.
    package init(_ reader: inout JSONReader) throws(ReelError) {
        var (site, by, op, seq): (Site?, String?, Op?, Seq?)
        var (end, atMs): (Seq, Int64?) = (.none, nil)
        try reader.object { (reader, key) throws(ReelError) in
            switch key.raw {
            case "site": site = Site(try reader.string())
            case "by": by = try reader.string()
            case "op": op = try reader.integer()
            case "seq": seq = try reader.integer()
            case "end": end = try reader.integer(from: -1)
            case "at" where try reader.kind() != .null: atMs = try reader.integer()
            default: try reader.skip()
            }
        }
        guard let site, let op, let seq else {
            throw reader.mismatch("found a site without site, op or seq")
        }
        (self.site, self.by, self.op, self.seq, self.end, self.atMs) = (site, by, op, seq, end, atMs)
    }
}
