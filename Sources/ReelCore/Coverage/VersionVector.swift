/// The last consumed op of every site of a stream. It tells what is there already, and what was known when.
public struct VersionVector: Hashable, Sendable {
    /// The last consumed op by site.
    public private(set) var ops: [Site: Op]

    /// A vector of no sites, or of these.
    public init(_ ops: [Site: Op] = [:]) {
        self.ops = ops
    }

    /// The last consumed op of a site; nil if there is none.
    public subscript(site: Site) -> Op? { ops[site] }

    /// Whether the op was consumed.
    public func covers(_ site: Site, _ op: Op) -> Bool {
        op <= ops[site] ?? -1
    }

    /// Notes that the op was consumed; an older one changes nothing.
    public mutating func advance(_ site: Site, to op: Op) {
        ops[site] = max(op, ops[site] ?? -1)
    }

    /// Forgets a site.
    public mutating func remove(_ site: Site) {
        ops[site] = nil
    }
}
