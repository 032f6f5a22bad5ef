extension Fold {
    /// Returns the digest: 64 bits that are equal for equal states. It is the sum of the hashes of all lines. This call
    /// hashes only the lines that have changed since the last one.
    public mutating func digest() -> UInt64 {
        var line = DigestLine()
        for slot in unhashedObjects where objects[slot].state != .free && !objects[slot].isHashed {
            count(slot, digest: line.sum(&objects[slot]))
        }
        for site in unhashedSites {
            guard let index = sites.index(forKey: site), !sites.values[index].isHashed else { continue }
            sites.values[index].digest = line.sum(site, sites.values[index])
            sites.values[index].isHashed = true
            digestSum &+= sites.values[index].digest
        }
        unhashedObjects.removeAll(keepingCapacity: true)
        unhashedSites.removeAll(keepingCapacity: true)
        return digestSum &+ line.hash(consumed: consumed, marks: marks) &+ line.hash(retired: retired)
    }
}

/// The sums over all objects of a fold with a source. They are stored with the head, because the objects are not read
/// when the fold is loaded.
public struct FoldTotals: Sendable, Equatable {
    /// The digest of the state.
    public var digest: UInt64
    /// The number of living objects.
    public var livingObjects: Int
    /// The size of the living objects in bytes, see `Fold.objectBytes`.
    public var objectBytes: Int

    /// Creates totals from their stored parts.
    ///
    /// - Parameters:
    ///   - digest: the digest of the state.
    ///   - livingObjects: the number of living objects.
    ///   - objectBytes: the size of the living objects in bytes.
    public init(digest: UInt64, livingObjects: Int, objectBytes: Int) {
        self.digest = digest
        self.livingObjects = livingObjects
        self.objectBytes = objectBytes
    }
}

extension Fold {
    /// Returns the sums over all objects, up to date.
    public mutating func totals() -> FoldTotals {
        let digest = digest()
        return FoldTotals(digest: digest, livingObjects: livingObjects, objectBytes: objectBytes)
    }

    /// Returns the part of the digest that the objects and tombstones add.
    package mutating func digestOfObjects() -> UInt64 {
        _ = digest()
        return sites.values.reduce(digestSum) { $0 &- $1.digest }
    }

    /// Takes over the sums over all objects. The sites must have been added, and no object.
    mutating func restore(_ totals: FoldTotals) {
        var line = DigestLine()
        for site in sites.keys {
            guard let index = sites.index(forKey: site) else { continue }
            sites.values[index].digest = line.sum(site, sites.values[index])
            sites.values[index].isHashed = true
        }
        unhashedSites = []
        digestSum = totals.digest &- line.hash(consumed: consumed, marks: marks) &- line.hash(retired: retired)
        livingObjects = totals.livingObjects
        objectBytes = totals.objectBytes
    }
}

/// Hashes the lines of a digest, which is the sum of their hashes. The fields of a line are joined by a zero byte and
/// hashed by FNV-1a and MurmurHash3's finalizer. A beginning that many lines share is hashed once, and the hash of an
/// unchanged field is kept.
struct DigestLine {
    private var bytes: [UInt8] = []

    /// Returns the hashes of an object's line and of its fields' lines, or of a tombstone's line.
    mutating func sum(_ object: inout FoldedObject) -> UInt64 {
        begin(object.state == .alive ? "O" : "D")
        add(key: object)
        add(object.seq)
        var sum = Self.hash(bytes)
        guard !object.fields.isEmpty else { return sum }
        begin("F")
        add(key: object)
        let start = FNV1a().adding(bytes)
        for index in object.fields.indices {
            object.fields[index].hash { hash($0, behind: start) }
            sum &+= object.fields[index].digest
        }
        return sum
    }

    private mutating func hash(_ field: borrowing FoldedField, behind start: FNV1a) -> UInt64 {
        bytes.removeAll(keepingCapacity: true)
        field.name.withUnsafeBytes { add(name: $0) }
        add(field.writer.seq)
        add(field.writer.site)
        bytes.append(0)
        field.writeValue(to: &bytes)
        return start.adding(bytes).finished
    }

    /// Returns the hashes of a site's line and of its lost texts' lines.
    mutating func sum(_ site: Site, _ state: SiteState) -> UInt64 {
        begin("S")
        add(site)
        add(state.op)
        add(state.seq)
        add(state.lost.all)
        (state.by ?? []).withUnsafeBytes { add(name: $0) }
        add(state.end)
        var sum = Self.hash(bytes)
        for field in state.lost.fields {
            begin("L")
            add(site)
            field.split { model, id, name in
                for part in [model, id, name] { add(name: part) }
            }
            add(field.seq)
            sum &+= Self.hash(bytes)
        }
        return sum
    }

    mutating func hash(consumed: Int64, marks: [Seq]) -> UInt64 {
        begin("M")
        add(consumed)
        for mark in marks { add(mark) }
        return Self.hash(bytes)
    }

    /// Returns 0 if no site was ever retired, because then the state has no such line.
    mutating func hash(retired: Seq) -> UInt64 {
        guard retired > .none else { return 0 }
        begin("R")
        add(retired)
        return Self.hash(bytes)
    }

    private mutating func begin(_ kind: Unicode.Scalar) {
        bytes.removeAll(keepingCapacity: true)
        bytes.append(UInt8(ascii: kind))
    }

    /// Appends model and id.
    private mutating func add(key object: borrowing FoldedObject) {
        bytes.append(0)
        object.key.withUnsafeBytes { JSONText($0).decode(into: &bytes) }
    }

    private mutating func add(name: Bytes) {
        bytes.append(0)
        JSONText(name).decode(into: &bytes)
    }

    private mutating func add(_ site: Site) {
        bytes.append(0)
        site.write(to: &bytes)
    }

    private mutating func add(_ number: Int64) {
        bytes.append(0)
        bytes.append(integer: number)
    }

    private static func hash(_ line: [UInt8]) -> UInt64 { FNV1a().adding(line).finished }
}

extension FNV1a {
    fileprivate func adding(_ bytes: [UInt8]) -> FNV1a {
        var fnv = self
        bytes.withUnsafeBytes { fnv.add($0) }
        return fnv
    }
}
