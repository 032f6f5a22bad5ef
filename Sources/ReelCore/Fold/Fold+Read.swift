/// An object or a tombstone as the fold holds it. Names are as they stand between the quotes of canonical JSON.
public struct ObjectState: Sendable, Equatable {
    /// A field with its last writer.
    public struct Field: Sendable, Equatable {
        /// The field's name.
        public let name: [UInt8]
        /// Canonical JSON.
        public let value: [UInt8]
        /// The seq of the last writer.
        public let seq: Seq
        /// The site of the last writer.
        public let site: Site
    }

    /// The model.
    public let model: [UInt8]
    /// The id within the model.
    public let id: [UInt8]
    /// The seq of the last event applied; of a tombstone that of its delete.
    public let seq: Seq
    /// Whether only the tombstone is left.
    public let isDeleted: Bool
    /// The fields in the order of canonical JSON's members; none of a tombstone.
    public let fields: [Field]

    /// The value of a field, nil if it is absent.
    public func value(_ name: String) -> [UInt8]? {
        fields.first { JSONText.isEqual($0.name, name) }?.value
    }
}

extension Fold {
    /// How many objects and tombstones there are.
    public var objectCount: Int { objects.count }

    /// How many objects, tombstones and sites there are: what the fold holds in memory.
    public var entryCount: Int { objects.count + sites.count }

    /// True if another site may begin.
    package var hasRoomForSite: Bool { liveSites < Limits.sites }

    /// The object or tombstone of this name; nil if it never was or is forgotten.
    public func object(model: String, id: String) -> ObjectState? {
        slot(model: model, id: id).map(object(at:))
    }

    /// The object or tombstone of this key; nil if it never was or is forgotten.
    package func object(_ key: [UInt8]) -> ObjectState? { slot(key).map(object(at:)) }

    /// The object or tombstone in a slot of `slots` or `Changes`.
    public func object(at slot: Int) -> ObjectState {
        let object = objects[slot]
        let fields = object.fields.map { field in
            var value = [UInt8]()
            field.writeValue(to: &value)
            return ObjectState.Field(
                name: field.name,
                value: value,
                seq: field.writer.seq,
                site: field.writer.site
            )
        }
        return ObjectState(
            model: Array(object.model),
            id: Array(object.id),
            seq: object.seq,
            isDeleted: object.state == .tombstone,
            fields: fields
        )
    }

    /// The slots of objects and tombstones that were touched after a seq, by model and id in the order of their bytes,
    /// objects first. A slot is good until the fold changes.
    public func slots(after seq: Seq = .none) -> [Int] {
        let touched = objects.slots.indices.filter { objects[$0].state != .free && objects[$0].seq > seq }
        return touched.sorted { a, b in
            let (x, y) = (objects[a], objects[b])
            if x.state != y.state { return x.state == .alive }
            return x.key.withUnsafeBytes { x in y.key.withUnsafeBytes { NameOrder.bytes(x, $0) < 0 } }
        }
    }

    /// What is known of a site; nil if it never wrote here, or has ended and is forgotten.
    public func site(_ site: Site) -> SiteState? { sites[site] }

    /// The number of sites that have not ended: what `Limits.sites` limits.
    public var liveSites: Int { sites.count - endedSites }

    /// The sites that wrote or ended after a seq, in order.
    public func sites(after seq: Seq = .none) -> [Site] {
        sites.filter { max($0.value.seq, $0.value.end) > seq }.keys.sorted()
    }

    /// The slot of the object or tombstone of this key; nil if it never was or is forgotten.
    package func slot(_ key: [UInt8]) -> Int? {
        Self.split(key) { objects.find(model: $0, id: $1) }
    }

    /// True if the object or its tombstone is there.
    package func knows(_ key: [UInt8]) -> Bool { slot(key) != nil }

    /// True if an object is in this slot, and no tombstone.
    package func isAlive(at slot: Int) -> Bool { objects[slot].state == .alive }

    /// True if the object of this key is there and was not deleted.
    package func holds(_ key: [UInt8]) -> Bool { slot(key).map(isAlive) ?? false }

    /// True if the object is there and was not deleted.
    package func holds(model: String, id: String) -> Bool {
        slot(model: model, id: id).map(isAlive) ?? false
    }

    /// Lends the two sides of a key.
    static func split<R>(_ key: [UInt8], _ body: (_ model: Bytes, _ id: Bytes) -> R) -> R {
        key.withUnsafeBytes { key in
            let separator = key.firstIndex(of: 0) ?? key.endIndex
            return body(Bytes(rebasing: key[..<separator]), Bytes(rebasing: key[separator...].dropFirst()))
        }
    }

    /// The key of an object of this name.
    package static func key(model: String, id: String) -> [UInt8] {
        JSONText.withEscaped(model) { model in JSONText.withEscaped(id) { Array(model) + [0] + Array($0) } }
    }

    private func slot(model: String, id: String) -> Int? {
        JSONText.withEscaped(model) { model in JSONText.withEscaped(id) { objects.find(model: model, id: $0) } }
    }
}

extension JSONText {
    /// Lends the text as it stands between the quotes of canonical JSON.
    static func withEscaped<R>(_ text: String, _ body: (Bytes) -> R) -> R {
        var bytes = [UInt8]()
        bytes.append(quoted: text)
        return bytes.withUnsafeBytes { body(Bytes(rebasing: $0[1..<$0.count - 1])) }
    }

    /// Whether escaped bytes spell this text, without any normalisation.
    static func isEqual(_ escaped: [UInt8], _ text: String) -> Bool {
        withEscaped(text) { text in escaped.withUnsafeBytes { $0.equals(text) } }
    }
}
