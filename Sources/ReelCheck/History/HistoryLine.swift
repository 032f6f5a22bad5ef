/// A line of a history, in the format of docs/reference/history.md. Texts and lists stay in the file; the line holds
/// their positions.
struct HistoryLine {
    /// The kind of the line.
    enum Kind: String {
        case begin, connect, disconnect, site, sent, ack, nack, left, subscribed, events, upto, lagged, unsubscribed
        case loaded, reached, state, head, fault, heal, end
    }

    let kind: Kind
    /// The position of the line in its file.
    let place: Range<Int>
    private(set) var ms: Int64 = 0
    private var hasTime = false
    private(set) var stream: LineReader.RawText?
    private(set) var epoch: UInt64?
    private(set) var partition: Int64?
    private(set) var partitions: Int64?
    private(set) var first: Int64?
    private(set) var head: Int64?
    private(set) var after: Int64?
    private(set) var from: Int64?
    private(set) var to: Int64?
    private(set) var seq: Int64?
    private(set) var op: Int64?
    private(set) var ops: ClosedRange<Int64>?
    private(set) var number: Int64?
    private(set) var wall: Int64?
    private(set) var unacked: Int64?
    /// For an `end` line: the number of lines before it.
    private(set) var lines: Int64?
    /// For a `nack` line: the time after which the event may be sent again.
    private(set) var retry: Int64?
    /// For a `begin` line: the version of the format.
    private(set) var history: Int64?
    /// The number that represents a site in this history. `siteText` is the UUID itself, in a `site` line.
    private(set) var site: Int64?
    private(set) var siteText: LineReader.RawText?
    private(set) var isFiltered = false
    private(set) var isFetched = false
    private(set) var digest: UInt64?
    private(set) var of: LineReader.RawText?
    private(set) var who: LineReader.RawText?
    /// For a `begin` line: the kind of party that wrote the history (client, node or driver).
    private(set) var party: LineReader.RawText?
    /// The position of the list of events or acks.
    private(set) var list: Range<Int>?

    /// Reads a line.
    init(_ bytes: UnsafeRawBufferPointer, _ place: Range<Int>) throws(Fault) {
        var reader = LineReader(bytes, place)
        kind = try Self.kind(&reader)
        self.place = place
        while reader.take(UInt8(ascii: ",")) {
            let name = try reader.text()
            guard reader.take(UInt8(ascii: ":")) else { throw Fault("no : at byte \(reader.position)") }
            try read(UnsafeRawBufferPointer(rebasing: bytes[name.place]), &reader)
        }
        guard reader.take(UInt8(ascii: "}")) else { throw Fault("no } at byte \(reader.position)") }
        try reader.finish()
        guard hasTime || kind == .site else { throw Fault("a line of \(kind.rawValue) without ms") }
    }

    /// Reads the first member of a line: `"e":"ack"`.
    static func kind(_ reader: inout LineReader) throws(Fault) -> Kind {
        guard reader.take(UInt8(ascii: "{")),
            "e" ~= UnsafeRawBufferPointer(rebasing: reader.bytes[try reader.text().place]),
            reader.take(UInt8(ascii: ":"))
        else { throw Fault("no line of a history: it does not begin with {\"e\":") }
        let word = UnsafeRawBufferPointer(rebasing: reader.bytes[try reader.text().place])
        if "events" ~= word { return .events }
        if "ack" ~= word { return .ack }
        let name = String(decoding: word, as: UTF8.self)
        guard let kind = Kind(rawValue: name) else { throw Fault("`\(name.prefix(40))` is no kind of line") }
        return kind
    }

    private mutating func read(_ name: UnsafeRawBufferPointer, _ reader: inout LineReader) throws(Fault) {
        switch name {
        case "ms":
            ms = try reader.integer()
            hasTime = true
        case "stream": stream = try reader.text()
        case "events", "acks": list = try reader.skip()
        case "from": from = try reader.integer()
        case "to": to = try reader.integer()
        case "epoch": epoch = try reader.hex64()
        case "partition": partition = try reader.integer()
        case "partitions": partitions = try reader.integer()
        case "first": first = try reader.integer()
        case "head": head = try reader.integer()
        case "after": after = try reader.integer()
        case "seq": seq = try reader.integer()
        case "op": op = try reader.integer()
        case "n": number = try reader.integer()
        case "wall": wall = try reader.integer()
        case "unacked": unacked = try reader.integer()
        case "lines": lines = try reader.integer()
        case "retry": retry = try reader.integer()
        case "history": history = try reader.integer()
        case "digest": digest = try reader.hex64()
        case "of": of = try reader.text()
        case "who": who = try reader.text()
        case "kind": party = try reader.text()
        case "site" where kind == .site: siteText = try reader.text()
        case "site": site = try reader.integer()
        case "ops":
            var bounds: [Int64] = []
            try reader.array { (reader) throws(Fault) in bounds.append(try reader.integer()) }
            guard bounds.count == 2, bounds[0] <= bounds[1] else { throw Fault("ops is not [first, last]") }
            ops = bounds[0]...bounds[1]
        case "filtered": isFiltered = try reader.isTrue()
        case "fetched": isFetched = try reader.isTrue()
        default: try reader.skip()
        }
    }

    /// Returns the value of a required member; throws if it is nil.
    func required<Value>(_ value: Value?, _ name: String) throws(Fault) -> Value {
        guard let value else { throw Fault("a line of \(kind.rawValue) without \(name)") }
        return value
    }
}

extension LineReader {
    fileprivate mutating func isTrue() throws(Fault) -> Bool {
        let place = try skip()
        return "true" ~= UnsafeRawBufferPointer(rebasing: bytes[place])
    }
}
