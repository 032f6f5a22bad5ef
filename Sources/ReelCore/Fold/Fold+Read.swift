/// An object or a tombstone of the fold. Names have the escaped form that canonical JSON has between the quotes.
public struct ObjectState: Sendable, Equatable {
    /// A field with its last writer.
    public struct Field: Sendable, Equatable {
        /// The field's name.
        public let name: [UInt8]
        /// The field's value as canonical JSON.
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
    /// The seq of the last event applied; for a tombstone, the seq of its delete.
    public let seq: Seq
    /// True if only the tombstone is left.
    public let isDeleted: Bool
    /// The fields in the order of canonical JSON's members; empty for a tombstone.
    public let fields: [Field]

    /// Returns the value of a field; nil if the field is absent.
    public func value(_ name: String) -> [UInt8]? {
        fields.first { JSONText.isEqual($0.name, name) }?.value
    }
}

extension Fold {
    /// The number of objects and tombstones in memory. Without a source these are all.
    public var objectCount: Int { objects.count }

    /// The number of objects, tombstones and sites that the fold holds in memory.
    public var entryCount: Int { objects.count + sites.count }

    /// True if the stream may have another site.
    package var hasRoomForSite: Bool { liveSites < Limits.sites }

    /// Returns the object or tombstone with this name; nil if it never existed or is forgotten.
    public func object(model: String, id: String) -> ObjectState? {
        JSONText.withEscaped(model) { model in
            JSONText.withEscaped(id) { folded(model: model, id: $0).map(ObjectState.init) }
        }
    }

    /// Returns the object or tombstone with this key; nil if it never existed or is forgotten.
    package func object(_ key: [UInt8]) -> ObjectState? { folded(key).map(ObjectState.init) }

    /// Returns the object or tombstone in a slot that `slots` or `Changes` has named.
    public func object(at slot: Int) -> ObjectState { ObjectState(objects[slot]) }

    /// Returns the slots of objects and tombstones in memory that were changed after `seq`, objects first. Each
    /// group is ordered by the bytes of model and id. A slot is valid until the fold changes.
    public func slots(after seq: Seq = .none) -> [Int] {
        let touched = objects.slots.indices.filter { objects[$0].state != .free && objects[$0].seq > seq }
        return touched.sorted { a, b in
            let (x, y) = (objects[a], objects[b])
            if x.state != y.state { return x.state == .alive }
            return x.key.withUnsafeBytes { x in y.key.withUnsafeBytes { NameOrder.bytes(x, $0) < 0 } }
        }
    }

    /// Returns the state of a site; nil if it never wrote to this stream, or has ended and is forgotten.
    public func site(_ site: Site) -> SiteState? { sites[site] }

    /// The number of sites, also of those that have ended and are not forgotten yet.
    public var siteCount: Int { sites.count }

    /// The number of sites that have not ended; `Limits.sites` limits it.
    public var liveSites: Int { sites.count - endedSites }

    /// Returns the sites that wrote or ended after `seq`, in order.
    public func sites(after seq: Seq = .none) -> [Site] {
        sites.filter { max($0.value.seq, $0.value.end) > seq }.keys.sorted()
    }

    /// Returns the slot of the object or tombstone with this key; nil if it is not in memory.
    package func slot(_ key: [UInt8]) -> Int? {
        Self.split(key) { objects.find(model: $0, id: $1) }
    }

    /// Returns the object or tombstone in a slot, without a copy of its fields.
    package func folded(at slot: Int) -> FoldedState { FoldedState(object: objects[slot]) }

    /// True if the object or its tombstone exists.
    package func knows(_ key: [UInt8]) -> Bool { folded(key) != nil }

    /// True if the slot holds an object and no tombstone.
    package func isAlive(at slot: Int) -> Bool { objects[slot].state == .alive }

    /// True if the object with this key exists and is not deleted.
    package func holds(_ key: [UInt8]) -> Bool { folded(key)?.state == .alive }

    /// True if the object exists and is not deleted.
    package func holds(model: String, id: String) -> Bool {
        JSONText.withEscaped(model) { model in
            JSONText.withEscaped(id) { folded(model: model, id: $0)?.state == .alive }
        }
    }

    /// Calls `body` with the model and the id of a key.
    static func split<R>(_ key: [UInt8], _ body: (_ model: Bytes, _ id: Bytes) -> R) -> R {
        key.withUnsafeBytes { key in
            let separator = key.firstIndex(of: 0) ?? key.endIndex
            return body(Bytes(rebasing: key[..<separator]), Bytes(rebasing: key[separator...].dropFirst()))
        }
    }

    /// Returns the key of an object.
    package static func key(model: String, id: String) -> [UInt8] {
        JSONText.withEscaped(model) { model in JSONText.withEscaped(id) { Array(model) + [0] + Array($0) } }
    }
}

/// An object or tombstone of a fold at one moment. A copy shares the storage of the fold's object.
package struct FoldedState: Sendable {
    fileprivate let object: FoldedObject

    /// The state that an app can read.
    package var state: ObjectState { ObjectState(object) }
}

extension Fold {
    /// Returns the objects and tombstones that differ from the rows of the source, by key; nil for one that is gone.
    package func unwrittenObjects() -> [[UInt8]: FoldedState?] {
        var states: [[UInt8]: FoldedState?] = [:]
        for key in unwritten.removed.keys { states.updateValue(slot(key).map(folded(at:)), forKey: key) }
        for slot in unwritten.slots where objects[slot].isUnwritten { states[objects[slot].key] = folded(at: slot) }
        return states
    }
}

extension FoldDraft {
    /// Returns an object or tombstone of the draft, without a copy of its fields; nil if there is neither.
    package func folded(_ key: [UInt8]) -> FoldedState? { object(for: key).map(FoldedState.init) }
}

extension ObjectState {
    /// Reads the row of an object or tombstone.
    ///
    /// - Parameters:
    ///   - row: the bytes that `Fold.writeRow(ofObject:to:)` has written.
    ///   - key: the key that `Fold.key(ofObject:)` has returned.
    /// - Throws: `internal` or `bad_json` for bytes that the fold cannot have written.
    package init(row: Bytes, key: [UInt8]) throws(ReelError) {
        var object = Fold.split(key) { ObjectTable.object(model: $0, id: $1, seq: .none) }
        try FoldLoader.read(row, into: &object)
        self.init(object)
    }

    init(_ object: FoldedObject) {
        model = Array(object.model)
        id = Array(object.id)
        seq = object.seq
        isDeleted = object.state == .tombstone
        fields = object.fields.map { field in
            var value = [UInt8]()
            field.writeValue(to: &value)
            return Field(name: field.name, value: value, seq: field.writer.seq, site: field.writer.site)
        }
    }
}

extension JSONText {
    /// Calls `body` with the escaped form that the text has between the quotes of canonical JSON.
    static func withEscaped<R>(_ text: String, _ body: (Bytes) -> R) -> R {
        var bytes = [UInt8]()
        bytes.append(quoted: text)
        return bytes.withUnsafeBytes { body(Bytes(rebasing: $0[1..<$0.count - 1])) }
    }

    /// True if the escaped bytes spell this text. No normalisation takes place.
    static func isEqual(_ escaped: [UInt8], _ text: String) -> Bool {
        withEscaped(text) { text in escaped.withUnsafeBytes { $0.equals(text) } }
    }
}
