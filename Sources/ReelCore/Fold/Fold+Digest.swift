extension Fold {
    /// 64 bits that are equal for equal states: the sum of the hashes of all lines. What has changed since the last
    /// reading is hashed now.
    public mutating func digest() -> UInt64 {
        var line = DigestLine()
        for slot in unhashedObjects where objects[slot].state != .free && !objects[slot].isHashed {
            objects[slot].digest = line.sum(&objects[slot])
            objects[slot].isHashed = true
            digestSum &+= objects[slot].digest
        }
        for site in unhashedSites {
            guard let index = sites.index(forKey: site), !sites.values[index].isHashed else { continue }
            sites.values[index].digest = line.hash(site, sites.values[index])
            sites.values[index].isHashed = true
            digestSum &+= sites.values[index].digest
        }
        unhashedObjects.removeAll(keepingCapacity: true)
        unhashedSites.removeAll(keepingCapacity: true)
        return digestSum &+ line.hash(consumed: consumed, marks: marks)
    }
}

/// The lines that a digest is the sum of: fields joined by a zero byte, hashed by FNV-1a and MurmurHash3's finalizer.
struct DigestLine {
    private var bytes: [UInt8] = []

    /// The line of an object and those of its fields, or the line of a tombstone. Fields that were hashed before and
    /// not written since are not hashed again.
    mutating func sum(_ object: inout FoldedObject) -> UInt64 {
        begin(object.state == .alive ? "O" : "D")
        add(key: object)
        add(object.seq)
        var sum = hash()
        for index in object.fields.indices {
            if object.fields[index].hashedAt != object.fields[index].writer.seq {
                object.fields[index].digest = hash(object.fields[index], of: object)
                object.fields[index].hashedAt = object.fields[index].writer.seq
            }
            sum &+= object.fields[index].digest
        }
        return sum
    }

    private mutating func hash(_ field: FoldedField, of object: FoldedObject) -> UInt64 {
        begin("F")
        add(key: object)
        field.name.withUnsafeBytes { add(name: $0) }
        add(field.writer.seq)
        add(field.writer.site)
        bytes.append(0)
        field.writeValue(to: &bytes)
        return hash()
    }

    mutating func hash(_ site: Site, _ state: SiteState) -> UInt64 {
        begin("S")
        add(site)
        add(state.op)
        add(state.seq)
        add(state.refused)
        (state.by ?? []).withUnsafeBytes { add(name: $0) }
        add(state.end)
        return hash()
    }

    mutating func hash(consumed: Int64, marks: [Seq]) -> UInt64 {
        begin("M")
        add(consumed)
        for mark in marks { add(mark) }
        return hash()
    }

    private mutating func begin(_ kind: Unicode.Scalar) {
        bytes.removeAll(keepingCapacity: true)
        bytes.append(UInt8(ascii: kind))
    }

    /// Model and id.
    private mutating func add(key object: FoldedObject) {
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

    private func hash() -> UInt64 {
        var fnv = FNV1a()
        bytes.withUnsafeBytes { fnv.add($0) }
        var x = fnv.value
        x ^= x >> 33
        x &*= 0xff51_afd7_ed55_8ccd
        x ^= x >> 33
        x &*= 0xc4ce_b9fe_1a85_ec53
        x ^= x >> 33
        return x
    }
}
