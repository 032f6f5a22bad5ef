import TestSupport

@testable import ReelCore

/// A generator of a random history of one stream: events of several sites, both valid and invalid. It folds the events
/// that it generates, so that most splices fit the text that their author saw.
struct FoldHistory {
    struct Record {
        var seq: Seq
        var value: [UInt8]
        var outcome: Outcome
    }

    private struct Author {
        var site: Site
        var op: Op = 0
        var base: Seq = .none
        var by: String?
    }

    private(set) var fold: Fold
    private(set) var records: [Record] = []
    var random: SeededNumbers
    private var authors: [Author] = []
    private var event = ParsedEvent()

    /// The names in the order of canonical JSON. 😀 is a surrogate pair in UTF-16, so it precedes U+FFFD.
    private static let names = ["a\"\\b", "count", "note", "tags", "text", "é", "😀", "\u{FFFD}"]
    private static let ids = ["1", "2", "\"q\\", "ü", "e\u{301}", "😀"]

    static let stream = StreamName("todo")!
    static let epoch = Epoch(0x9f)

    init(seed: UInt64, listsChanges: Bool = false) {
        random = SeededNumbers(seed)
        fold = Fold(stream: Self.stream, partition: 0, epoch: Self.epoch, listsChanges: listsChanges)
        for _ in 0..<5 { addAuthor() }
    }

    private mutating func addAuthor() {
        let by: String? = random.oneIn(2) ? random.pick(["ann", "bob", "\"x\""]) : nil
        authors.append(Author(site: .random(using: &random), by: by))
    }

    /// Changes the fold so that its next mark is near and its earlier marks are recent. The horizon then moves without
    /// tens of thousands of events.
    mutating func jump() {
        let next = max(16, fold.consumed / Limits.markEvery + 1)
        fold.consumed = next * Limits.markEvery - Int64.random(in: 2...40, using: &random)
        let low = max(fold.horizon + 1, fold.seq - 150)
        guard fold.seq - low > 20 else { return }
        var marks = Set<Seq>()
        let count = min(Int(next - 1), 16)
        if fold.marks.count == 16 { marks.insert(fold.marks[0]) }
        while marks.count < count { marks.insert(Seq.random(in: low...fold.seq, using: &random)) }
        fold.marks = marks.sorted()
    }

    /// Appends the next record of the stream. The seqs that it skips belong to other streams.
    @discardableResult
    mutating func step() -> Record {
        let seq = fold.seq + Seq.random(in: 1...3, using: &random)
        let value = random.oneIn(15) && !records.isEmpty ? resent() : made(at: seq)
        let outcome = fold.fold(value, seq: seq, &event)
        if let index = authors.firstIndex(where: { $0.site == event.site }) {
            switch outcome {
            case .applied, .rejected: authors[index].op = event.op + 1
            default: break
            }
            if event.last, authors.count > 3 { authors.remove(at: index) }
        }
        if random.oneIn(60) { addAuthor() }
        let record = Record(seq: seq, value: value, outcome: outcome)
        records.append(record)
        return record
    }

    /// Calls `body` with the fold, so that it can take the changes.
    mutating func withFold<R>(_ body: (inout Fold) -> R) -> R { body(&fold) }

    private mutating func resent() -> [UInt8] {
        records[Int.random(in: max(0, records.count - 60)..<records.count, using: &random)].value
    }

    // MARK: One event

    private mutating func made(at seq: Seq) -> [UInt8] {
        let index = Int.random(in: 0..<authors.count, using: &random)
        if random.oneIn(4) { authors[index].base = fold.seq }
        if random.oneIn(3) {
            authors[index].base = max(authors[index].base, fold.seq - Seq.random(in: 0...40, using: &random))
        }
        let author = authors[index]
        let base = random.oneIn(60) ? seq : random.oneIn(40) ? max(-1, author.base - 30) : author.base
        let op = random.oneIn(50) ? author.op + 1 : author.op
        let by = random.oneIn(60) ? "eve" : author.by
        var members = ["\"base\":\(base)"]
        if let by { members.append("\"by\":\(Self.quoted(by))") }
        let last = random.oneIn(80) ? ["\"last\":true"] : []
        let stamp = ["\"op\":\(op)"]
        let viewer = TextViewer(site: author.site, base: base)
        let site = "\"site\":\"\(author.site)\""
        switch Int.random(in: 0..<10, using: &random) {
        case 0:
            members += last + stamp + [site, "\"type\":\"noop\""]
        case 1, 2:
            let parts = (0..<Int.random(in: 1...4, using: &random)).map { _ in
                let (front, middle, back) = part(viewer)
                return "{" + (front + middle + back).joined(separator: ",") + "}"
            }
            members.append("\"events\":[" + parts.joined(separator: ",") + "]")
            members += last + stamp + [site, "\"type\":\"batch\""]
        default:
            let (front, middle, back) = part(viewer)
            // The order of the members is: fields, id, if, last, model, op, ops, site, type.
            members += front + last + [middle[0]] + stamp + middle.dropFirst() + [site] + back
        }
        return Array(("{" + members.joined(separator: ",") + "}").utf8)
    }

    /// Returns the members of a change in three parts: those before `last`, then model and ops, then type.
    private mutating func part(_ viewer: TextViewer) -> ([String], [String], [String]) {
        let (model, id) = (random.pick(["m", "task"]), random.pick(Self.ids))
        let object = fold.object(model: model, id: id)
        let kind =
            random.oneIn(25)
            ? "delete"
            : object == nil
                ? random.oneIn(6) ? "update" : "insert"
                : random.oneIn(8) ? "insert" : "update"
        var names = Self.names
        var front: [String] = []
        var middle = ["\"model\":\(Self.quoted(model))"]
        if kind != "delete" {
            let fields = names.filter { _ in random.oneIn(6) }
            names.removeAll { fields.contains($0) }
            if !fields.isEmpty || random.oneIn(9) {
                front.append(
                    "\"fields\":{" + fields.map { "\(Self.quoted($0)):\(value(for: $0))" }.joined(separator: ",") + "}"
                )
            }
        }
        front.append("\"id\":\(Self.quoted(id))")
        if random.oneIn(12) {
            let name = random.pick(Self.names)
            let writer = object?.fields.first { JSONText.isEqual($0.name, name) }?.seq ?? -1
            front.append("\"if\":{\(Self.quoted(name)):\(random.oneIn(4) ? -1 : writer)}")
        }
        if kind == "update" {
            let used = names.filter { _ in random.oneIn(3) }
            let ops = used.map { "\(Self.quoted($0)):\(operation(on: $0, model: model, id: id, viewer))" }
            if !ops.isEmpty { middle.append("\"ops\":{" + ops.joined(separator: ",") + "}") }
        }
        return (front, middle, ["\"type\":\"\(kind)\""])
    }

    private mutating func value(for name: String) -> String {
        if random.oneIn(7) { return "null" }
        if random.oneIn(8) { return random.pick(["true", "{\"a\":[1,{}]}", "\"x\"", "17", "[3,3,1]", "[]", "\"\""]) }
        return switch name {
        case "count": random.pick(["0", "-1.5", "1e+300", "7"])
        case "tags", "a\"\\b":
            random.pick([#"["b","a","b"]"#, #"[1,[2],"x"]"#, #"["\",]",1e+21,["]",{}],"\\"]"#])
        default: Self.quoted(text(Int.random(in: 0...12, using: &random)))
        }
    }

    private mutating func operation(on name: String, model: String, id: String, _ viewer: TextViewer) -> String {
        let kind = random.oneIn(12) ? random.pick(["count", "tags", "text"]) : name
        switch kind {
        case "count": return "{\"inc\":\(random.pick(["1", "-2.5", "1.7e+308", "0.1"]))}"
        case "tags", "a\"\\b":
            let (add, remove) = (elements(), elements())
            return random.oneIn(4) ? "{\"add\":\(add)}" : "{\"add\":\(add),\"remove\":\(remove)}"
        default:
            var count = fold.length(model: model, id: id, name: name, viewer)
            let triples = (0..<Int.random(in: 1...3, using: &random)).map { _ in
                let offset = Int.random(in: 0...count, using: &random) + (random.oneIn(60) ? 5 : 0)
                let removed =
                    min(max(0, count - offset), Int.random(in: 0...5, using: &random)) + (random.oneIn(60) ? 9 : 0)
                let inserted = text(Int.random(in: 0...(random.oneIn(20) ? 200 : 6), using: &random))
                count = max(0, count + inserted.unicodeScalars.count - removed)
                return "[\(offset),\(removed),\(Self.quoted(inserted))]"
            }
            return "{\"splice\":[\(triples.joined(separator: ","))]}"
        }
    }

    private mutating func elements() -> String {
        let all = ["\"a\"", "\"b\"", "1", "[2]", "{\"k\":null}", "\"ü\"", "null", "2", #""\",]""#, #"["]",{}]"#]
        return "[" + all.filter { _ in random.oneIn(4) }.joined(separator: ",") + "]"
    }

    private mutating func text(_ count: Int) -> String {
        var text = String.UnicodeScalarView()
        for _ in 0..<count { text.append(random.pick(Array("abcd \"\\\n\u{1}é漢😀\u{301}".unicodeScalars))) }
        return String(text)
    }

    static func quoted(_ text: String) -> String {
        var bytes = [UInt8]()
        bytes.append(quoted: text)
        return String(decoding: bytes, as: UTF8.self)
    }
}

extension Fold {
    /// Parses and folds the value of a record. A value that is not an event is void.
    mutating func fold(_ value: [UInt8], seq: Seq, _ event: inout ParsedEvent) -> Outcome {
        value.withUnsafeBytes { bytes in
            do throws(ReelError) {
                try event.parse(bytes)
                return apply(event, bytes, seq: seq)
            } catch {
                advance(to: seq)
                return .void
            }
        }
    }

    /// Parses and folds the value of a record.
    @discardableResult
    mutating func fold(_ value: String, seq: Seq) -> Outcome {
        var event = ParsedEvent()
        return fold(Array(value.utf8), seq: seq, &event)
    }

    /// Returns the number of elements that the viewer counts in a text, or 0 if the field is not a text.
    func length(model: String, id: String, name: String, _ viewer: TextViewer) -> Int {
        let slot = JSONText.withEscaped(model) { model in
            JSONText.withEscaped(id) { objects.find(model: model, id: $0) }
        }
        guard let slot, let field = JSONText.withEscaped(name, { objects[slot].field($0) }) else { return 0 }
        switch field.value {
        case .text(var text): return text.count(for: viewer)
        case .plain(let bytes) where bytes.first == UInt8(ascii: "\""):
            return bytes.withUnsafeBytes { JSONText(Bytes(rebasing: $0[1..<$0.count - 1])).scalarCount }
        case .plain: return 0
        }
    }

    /// Returns all lines of the snapshot, or of the delta after a seq.
    mutating func lines(after: Seq = .none) throws -> [UInt8] {
        var bytes = [UInt8]()
        var writer = try snapshot(after: after)
        writer.writeAll(to: &bytes)
        return bytes
    }
}
