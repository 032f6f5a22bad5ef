import ReelBase

/// The value of a field: the canonical bytes of a plain value, or a text that was spliced.
enum FieldValue: Sendable {
    case plain([UInt8])
    case text(SplicedText)
}

/// A field of an object with its last writer.
struct FoldedField: Sendable {
    /// The escaped name, without quotes.
    let name: [UInt8]
    var value: FieldValue
    /// The last writer. Set with every write, even if the value stays the same.
    var writer: TextMark { didSet { digest = 0 } }
    /// The hash of the field's line in the digest; 0 if it is not up to date.
    private(set) var digest: UInt64 = 0

    init(name: [UInt8], value: FieldValue, writer: TextMark) {
        self.name = name
        self.value = value
        self.writer = writer
    }

    /// Hashes the field's line, unless the hash is up to date.
    mutating func hash(_ line: (borrowing FoldedField) -> UInt64) {
        if digest == 0 { digest = line(self) }
    }

    /// An upper bound of the weight of the field's text, see `Limits.history`.
    var weight: Int {
        if case .text(let text) = value { text.weight } else { 0 }
    }

    /// The number of bytes of the canonical value.
    var valueCount: Int {
        switch value {
        case .plain(let bytes): bytes.count
        case .text(let text): text.bytes + 2
        }
    }

    /// The bytes that the field adds to the size of its object, with quotes, colon and comma.
    var cost: Int { name.count + valueCount + 4 }

    /// The last plain write; nil if there is none.
    var written: TextMark? {
        switch value {
        case .plain: writer
        case .text(let text): text.written
        }
    }

    /// Appends the canonical value.
    func writeValue(to output: inout [UInt8]) {
        switch value {
        case .plain(let bytes): output += bytes
        case .text(let text):
            output.append(ASCII.quote)
            text.write(into: &output)
            output.append(ASCII.quote)
        }
    }

    /// Replaces the value with a plain one. Reuses the storage of the old value if it is large enough.
    mutating func write(_ bytes: Bytes, by mark: TextMark) {
        writer = mark
        guard case .plain(var storage) = value else {
            value = .plain(Array(bytes))
            return
        }
        value = .plain([])
        storage.removeAll(keepingCapacity: true)
        storage.append(contentsOf: bytes)
        value = .plain(storage)
    }
}

/// An object or, once deleted, its tombstone.
struct FoldedObject: Sendable {
    enum State: Sendable {
        case alive, tombstone
        /// A slot of the table that holds nothing.
        case free
    }

    /// The escaped model, a zero byte, and the escaped id, both without quotes.
    let key: [UInt8]
    let hash: UInt64
    var state = State.alive
    /// The seq of the last event applied; for a tombstone, the seq of the first delete.
    var seq: Seq
    /// The fields in the order of canonical JSON's members.
    var fields: [FoldedField] = []
    /// The sum of the fields' costs.
    private(set) var cost = 0
    /// An upper bound of the sum of the weights of its texts.
    private(set) var weight = 0

    /// The hashes of the object's lines in the digest of the stream, valid while `isHashed`.
    var digest: UInt64 = 0
    var isHashed = false
    /// True if the object is in the list of changes.
    var isListed = false
    /// The bytes of the object that `Fold.objectBytes` includes while `isHashed`; 0 for a tombstone.
    var countedBytes: Int32 = 0
    /// The seq at which the object was last pushed to `Fold.agingObjects`.
    var queued = Seq.none

    // In a fold with a source; see `ObjectSource`.
    /// True if the object is equal to its row.
    var isStored = false
    /// True if the slot is in the list of unwritten rows.
    var isUnwritten = false
    /// True if the object was used since the hand of the cache's clock has passed it.
    var isRecent = false
    /// The `agingSeq` of the source's row; −1 if it has none.
    var storedAging = Seq.none

    init(key: [UInt8], hash: UInt64, seq: Seq) {
        self.key = key
        self.hash = hash
        self.seq = seq
    }

    /// The bytes of the object that `Fold.objectBytes` includes: model, id and the fields.
    var countableBytes: Int { key.count - 1 + size }

    /// An estimate of an object's size in memory in bytes, without fields.
    static let memoryMin = 300
    /// An estimate of a field's size in memory in bytes, besides the bytes of its name and value.
    private static let fieldMemory = 160

    /// An estimate of the size in memory in bytes. A run of a text weighs at least `Limits.run` and takes about 100
    /// bytes.
    var memory: Int {
        Self.memoryMin + key.count + fields.count * Self.fieldMemory + cost + weight / Limits.run * 100
    }

    /// An estimate of the size of the object's row in bytes. The row of an object without texts is not larger, unless
    /// its fields have different sites.
    var rowBytes: Int { 48 + cost + fields.count * 12 }

    /// The seq at which the horizon changes the object's row, see `StoredRow.agingSeq`.
    var agingSeq: Seq? {
        if state == .tombstone { return seq }
        var oldest: Seq?
        for field in fields {
            guard case .text = field.value else { continue }
            oldest = min(oldest ?? field.writer.seq, field.writer.seq)
        }
        return oldest
    }

    /// The number of bytes of `{"name":value,…}`.
    var size: Int { fields.isEmpty ? 2 : 1 + cost }

    /// The escaped model, without quotes.
    var model: ArraySlice<UInt8> { key[..<separator] }
    /// The escaped id, without quotes.
    var id: ArraySlice<UInt8> { key[(separator + 1)...] }
    private var separator: Int { key.firstIndex(of: 0) ?? key.count - 1 }

    /// Returns the index of a field, or the index at which to insert it.
    func find(_ name: Bytes) -> (index: Int, isFound: Bool) {
        fields.sortedIndex { field in field.name.withUnsafeBytes { NameOrder.members($0, name) } }
    }

    func field(_ name: Bytes) -> FoldedField? {
        let (index, isFound) = find(name)
        return isFound ? fields[index] : nil
    }

    mutating func write(_ name: Bytes, _ value: Bytes, by mark: TextMark) {
        let (index, isFound) = find(name)
        if isFound {
            cost += value.count - fields[index].valueCount
            weight -= fields[index].weight
            fields[index].write(value, by: mark)
        } else {
            insert(FoldedField(name: Array(name), value: .plain(Array(value)), writer: mark), at: index)
        }
    }

    mutating func insert(_ field: FoldedField, at index: Int) {
        cost += field.cost
        weight += field.weight
        fields.insert(field, at: index)
    }

    /// Replaces all fields by those, which are in order.
    mutating func replaceFields(by fields: [FoldedField]) {
        self.fields = fields
        (cost, weight) = (0, 0)
        for index in fields.indices {
            cost += fields[index].cost
            weight += fields[index].weight
        }
    }

    mutating func remove(_ name: Bytes) {
        let (index, isFound) = find(name)
        guard isFound else { return }
        cost -= fields[index].cost
        weight -= fields[index].weight
        fields.remove(at: index)
    }

    /// Splices a field's text. The field must be absent or a string.
    mutating func splice(_ name: Bytes, by mark: TextMark, _ body: (inout SplicedText) -> Void) {
        let (index, isFound) = find(name)
        if !isFound {
            insert(FoldedField(name: Array(name), value: .text(SplicedText(written: nil)), writer: mark), at: index)
        }
        var text: SplicedText
        switch fields[index].value {
        case .text(let spliced): text = spliced
        case .plain(let bytes):
            let writer = fields[index].writer
            text = bytes.withUnsafeBytes { SplicedText(Bytes(rebasing: $0[1..<$0.count - 1]), written: writer) }
        }
        fields[index].value = .plain([])
        let before = (bytes: text.bytes, weight: text.weight)
        body(&text)
        cost += text.bytes - before.bytes
        weight += text.weight - before.weight
        fields[index].value = .text(text)
        fields[index].writer = mark
    }

    /// Returns the number of elements that `viewer` counts in a field. The field must be absent or a text, and the
    /// viewer must have seen its last plain write.
    mutating func count(_ name: Bytes, for viewer: TextViewer) -> Int {
        let (index, isFound) = find(name)
        guard isFound else { return 0 }
        switch fields[index].value {
        case .plain(let bytes):
            return bytes.withUnsafeBytes { JSONText(Bytes(rebasing: $0[1..<$0.count - 1])).scalarCount }
        case .text(var text):
            fields[index].value = .plain([])
            defer { fields[index].value = .text(text) }
            return text.count(for: viewer)
        }
    }

    /// Drops the edit history of the object's texts if it weighs more than `Limits.history`, after an event of
    /// `viewer`.
    ///
    /// From then on, every text with a weight counts as written plainly at the seq of its last writer. The writer is
    /// `viewer.site` if the viewer sees the text as it is, otherwise no site (`TextMark.nobody`).
    mutating func flatten(behind viewer: TextViewer, above horizon: Seq) {
        guard weight > Limits.history else { return }
        changeTexts { text, _ in text.weigh(above: horizon) }
        guard weight > Limits.history else { return }
        changeTexts { text, writer in
            guard text.weight > 0 else { return }
            var mark = TextMark.nobody(at: writer.seq)
            if text.isWhole(for: viewer) { mark.site = viewer.site }
            var bytes = [UInt8]()
            text.write(into: &bytes)
            text = bytes.withUnsafeBytes { SplicedText($0, written: mark) }
        }
    }

    private mutating func changeTexts(_ body: (_ text: inout SplicedText, _ writer: TextMark) -> Void) {
        weight = 0
        for index in fields.indices {
            guard case .text(var text) = fields[index].value else { continue }
            fields[index].value = .plain([])
            body(&text, fields[index].writer)
            fields[index].value = .text(text)
            weight += fields[index].weight
        }
    }

    /// Makes plain values of the texts that no splice above the horizon has changed. Returns false if there are none.
    @discardableResult
    mutating func settle(below horizon: Seq) -> Bool {
        var hasChanged = false
        for index in fields.indices where fields[index].writer.seq <= horizon {
            guard case .text = fields[index].value else { continue }
            weight -= fields[index].weight
            var bytes = [UInt8]()
            fields[index].writeValue(to: &bytes)
            fields[index].value = .plain(bytes)
            hasChanged = true
        }
        return hasChanged
    }

    /// Makes this a living object without fields.
    mutating func clear(at seq: Seq) {
        state = .alive
        self.seq = seq
        fields = []
        cost = 0
        weight = 0
    }

    /// Makes this a tombstone.
    mutating func bury(at seq: Seq) {
        clear(at: seq)
        state = .tombstone
    }
}
