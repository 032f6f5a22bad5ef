extension Fold {
    /// Calls `body` with the values of the seeds that describe this state in another log. The order is: the retirement
    /// of sites, the sites, the objects, the tombstones. Seeds omit everything that has a meaning only in this log:
    /// seqs, marks, and the histories of texts.
    public func forEachSeed(_ body: (_ kind: SeedKind, _ value: [UInt8]) throws -> Void) rethrows {
        var value: [UInt8] = []
        if retired > .none { try body(.retired, Array(#"{"line":{"retired":true},"type":"seed"}"#.utf8)) }
        for site in sites(after: .none) {
            value.removeAll(keepingCapacity: true)
            writeSeed(of: site, to: &value)
            try body(.site, value)
        }
        for slot in slots() {
            value.removeAll(keepingCapacity: true)
            writeSeed(of: objects[slot], to: &value)
            try body(objects[slot].state == .alive ? .object : .tombstone, value)
        }
    }

    private func writeSeed(of site: Site, to value: inout [UInt8]) {
        guard let state = sites[site] else { return }
        value.append(#"{"line":{"#)
        if let by = state.by {
            value.append(#""by":""#)
            value.append(contentsOf: by)
            value.append(#"","#)
        }
        value.append(#""end":"#)
        // Another log can know only that the site has ended, not at which seq.
        value.append(integer: state.end == .none ? -1 : 0)
        value.append(#","op":"#)
        value.append(integer: state.op)
        value.append(#","site":"#)
        value.append(quoted: site)
        value.append(#"},"type":"seed"}"#)
    }

    private func writeSeed(of object: FoldedObject, to value: inout [UInt8]) {
        if object.state == .alive {
            value.append(#"{"line":{"fields":{"#)
            for (index, field) in object.fields.enumerated() {
                value.append(index == 0 ? "\"" : ",\"")
                value.append(contentsOf: field.name)
                value.append("\":[")
                field.writeValue(to: &value)
                value.append(ASCII.comma)
                value.append(quoted: field.writer.site)
                value.append("]")
            }
            value.append(#"},"object":[""#)
        } else {
            value.append(#"{"line":{"deleted":[""#)
        }
        value.append(contentsOf: object.model)
        value.append(#"",""#)
        value.append(contentsOf: object.id)
        value.append(#""]},"type":"seed"}"#)
    }
}

/// The kind of thing that a seed describes.
public enum SeedKind: Sendable {
    /// A site, a living object, a tombstone, or the fact that sites of the stream were retired.
    case site, object, tombstone, retired
}

/// A sum over the seeds of a stream that does not depend on their order. Two folds with equal sums hold the same
/// objects with the same last writers, the same tombstones, and the same sites with the same ops.
public struct SeedSum: Equatable, Sendable {
    /// The number of sites.
    public private(set) var sites = 0
    /// The number of living objects.
    public private(set) var objects = 0
    /// The number of tombstones.
    public private(set) var tombstones = 0
    /// The number of bytes of all seeds.
    public private(set) var bytes = 0
    private var hash: UInt64 = 0

    /// The sum of no seeds.
    public init() {}

    /// Creates the sum of the seeds of `fold`.
    public init(_ fold: Fold) {
        fold.forEachSeed { add($0, $1) }
    }

    /// Adds a seed.
    public mutating func add(_ kind: SeedKind, _ value: [UInt8]) {
        switch kind {
        case .site: sites += 1
        case .object: objects += 1
        case .tombstone: tombstones += 1
        case .retired: break
        }
        bytes += value.count
        var line = FNV1a()
        value.withUnsafeBytes { line.add($0) }
        hash &+= line.finished
    }
}
