extension Fold {
    /// Hands out the values of the seeds that say this state in another log: that sites were retired, then sites, then
    /// objects, then tombstones. Seeds leave out everything that has a meaning in this log only: seqs, marks, the
    /// histories of texts.
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
        // That it has ended is all that another log can know.
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

/// What a seed says something of.
public enum SeedKind: Sendable {
    /// A site, a living object, a tombstone; that sites of the stream were retired.
    case site, object, tombstone, retired
}

/// What the seeds of a stream say together, whatever their order: two folds of equal sums hold the same objects with
/// the same last writers, the same tombstones, and the same sites with the same ops.
public struct SeedSum: Equatable, Sendable {
    /// How many sites there are.
    public private(set) var sites = 0
    /// How many living objects there are.
    public private(set) var objects = 0
    /// How many tombstones there are.
    public private(set) var tombstones = 0
    /// The bytes of all seeds.
    public private(set) var bytes = 0
    private var hash: UInt64 = 0

    /// The sum of no seeds.
    public init() {}

    /// The sum of what a fold says.
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
