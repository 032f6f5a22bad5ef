/// What a field holds: the canonical bytes of a plain value, or a text that was spliced.
enum FieldValue: Sendable {
    case plain([UInt8])
    case text(SplicedText)
}

/// A field of an object with its last writer.
struct FoldedField: Sendable {
    /// The name as it stands between its quotes.
    let name: [UInt8]
    var value: FieldValue
    /// Set with every change of the value, also where it is the same again.
    var writer: TextMark { didSet { digest = 0 } }
    /// The hash of its line in the digest; 0: not known.
    private(set) var digest: UInt64 = 0

    init(name: [UInt8], value: FieldValue, writer: TextMark) {
        self.name = name
        self.value = value
        self.writer = writer
    }

    /// Hashes its line, if that is not known.
    mutating func hash(_ line: (borrowing FoldedField) -> UInt64) {
        if digest == 0 { digest = line(self) }
    }

    /// An upper bound of the weight of the field's text, see `Limits.history`.
    var weight: Int {
        if case .text(let text) = value { text.weight } else { 0 }
    }

    /// How many bytes the canonical value has.
    var valueCount: Int {
        switch value {
        case .plain(let bytes): bytes.count
        case .text(let text): text.bytes + 2
        }
    }

    /// What the field adds to its object's size: quotes, colon, comma.
    var cost: Int { name.count + valueCount + 4 }

    /// The last plain write, nil if there is none.
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

    /// Writes a value plainly, into the storage of the old one where that is large enough.
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
        /// A place in the table that holds nothing.
        case free
    }

    /// Model, a zero byte, id, as they stand between their quotes.
    let key: [UInt8]
    let hash: UInt64
    var state = State.alive
    /// Of the last event applied; of a tombstone the first delete.
    var seq: Seq
    /// In the order of canonical JSON's members.
    var fields: [FoldedField] = []
    /// The sum of the fields' costs.
    private(set) var cost = 0
    /// The sum of the weights of its texts, at most.
    private(set) var weight = 0

    /// What its lines add to the digest of the stream, while `isHashed`.
    var digest: UInt64 = 0
    var isHashed = false
    /// Whether it stands in the list of changes.
    var isListed = false
    /// The bytes of the object that `Fold.objectBytes` contains while `isHashed`; 0 for a tombstone.
    var countedBytes: Int32 = 0
    /// The seq at which it was last put into the queue of what ages.
    var queued = Seq.none

    init(key: [UInt8], hash: UInt64, seq: Seq) {
        self.key = key
        self.hash = hash
        self.seq = seq
    }

    /// Bytes of `{"name":value,…}`.
    var size: Int { fields.isEmpty ? 2 : 1 + cost }

    /// The model, as it stands between its quotes.
    var model: ArraySlice<UInt8> { key[..<separator] }
    /// The id, as it stands between its quotes.
    var id: ArraySlice<UInt8> { key[(separator + 1)...] }
    private var separator: Int { key.firstIndex(of: 0) ?? key.count - 1 }

    /// Where the field stands, or should stand.
    func find(_ name: Bytes) -> (index: Int, isFound: Bool) {
        var (low, high) = (0, fields.count)
        while low < high {
            let middle = (low + high) / 2
            let order = fields[middle].name.withUnsafeBytes { NameOrder.members($0, name) }
            if order == 0 { return (middle, true) }
            if order < 0 { low = middle + 1 } else { high = middle }
        }
        return (low, false)
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

    mutating func remove(_ name: Bytes) {
        let (index, isFound) = find(name)
        guard isFound else { return }
        cost -= fields[index].cost
        weight -= fields[index].weight
        fields.remove(at: index)
    }

    /// Splices a field's text; it is absent or a string.
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

    /// How many elements a field that is absent or a text has for the viewer, who has seen its plain write.
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

    /// Forgets who did what to its texts where that weighs more than an object may remember, behind an event of this
    /// viewer: every text that weighs something is from now on as if it had been written plainly at the seq of its last
    /// writer, by the viewer if he sees it as it is, and else by nobody.
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

    /// Makes plain values of the texts that no splice above the horizon has touched.
    mutating func settle(below horizon: Seq) {
        for index in fields.indices where fields[index].writer.seq <= horizon {
            guard case .text = fields[index].value else { continue }
            weight -= fields[index].weight
            var bytes = [UInt8]()
            fields[index].writeValue(to: &bytes)
            fields[index].value = .plain(bytes)
        }
    }

    /// Makes it a living object without fields.
    mutating func clear(at seq: Seq) {
        state = .alive
        self.seq = seq
        fields = []
        cost = 0
        weight = 0
    }

    /// Makes it a tombstone.
    mutating func bury(at seq: Seq) {
        clear(at: seq)
        state = .tombstone
    }
}
