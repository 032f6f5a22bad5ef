import ReelBase
import TestSupport

@testable import ReelCheck

/// A record of the log.
struct LogRecord {
    var seq: Int64
    var key: [UInt8]
    var value: [UInt8]
}

/// A generator of random histories of one partition. It tries everything: sites whose bases lag and fall back, resends,
/// gaps, foreign authors, invalid records, other streams, holes, and all operations of events. It reads its own naive
/// fold, so that events refer to existing objects, or just miss them.
struct HistoryGenerator {
    static let stream = Text("notes:1")
    static let otherStream = Text("~tasks".dropFirst() + "-2")

    private struct Writer {
        var site: Site
        var by: Text?
        var base: Int64 = -1
    }

    var random: SeededNumbers
    private(set) var fold = NaiveFold(epoch: "00000000000000aa", partition: 0, of: 1)
    private var writers: [Writer] = []
    private var sent: [LogRecord] = []
    private var seedsLeft = 0
    private var key = stream
    private var isEnding = false
    /// The latest objects.
    private var names: [ObjectName] = []
    let limit: Limit?
    private var isBig = false
    private var isHidden: Bool { isBig && limit == .hidden }
    /// True if the next change must not replace a text that is used to reach a limit.
    private var isKept: Bool { isBig && (limit == .hidden || limit == .runs) }

    /// A limit that one object of the history reaches.
    enum Limit {
        /// The maximum number of bytes of an object.
        case bytes
        /// The maximum number of deleted elements that the texts of an object remember.
        case hidden
        /// The maximum number of runs that the texts of an object remember (see `splinter`).
        case runs
    }

    /// Creates a generator. With a limit, many of the changes are on the object that reaches the limit.
    init(seed: UInt64, to limit: Limit? = nil) {
        random = SeededNumbers(seed)
        self.limit = limit
        writers = (0..<5).map { _ in newWriter() }
        if random.oneIn(2) { seedsLeft = 1 + random.below(40) }
    }

    /// Returns the next record and the result of the naive fold.
    mutating func next() -> (record: LogRecord, judgement: Judgement?) {
        key = random.oneIn(30) ? Self.otherStream : Self.stream
        var seq = fold.seq + 1
        if random.oneIn(40), seedsLeft == 0 || random.oneIn(4) { seq += Int64(1 + random.below(3)) }
        let record = LogRecord(seq: seq, key: key.bytes, value: [])
        let made = make(record)
        let judgement = fold.apply(seq: seq, key: made.key, value: made.value)
        if judgement == .applied || random.oneIn(10) { sent.append(made) }
        return (made, judgement)
    }

    /// The number of records of a history.
    static let steps = 1_500

    /// True if the fold should get close to its next mark. After 200 records without marks, marks follow each other
    /// closely, so that the horizon moves through recent records.
    func isToAge(at step: Int) -> Bool {
        step > 200 && step.isMultiple(of: 25)
    }

    /// Raises the count of consumed events, so that the next mark is `events` events away.
    mutating func age(toMarkWithin events: Int) {
        let consumed = fold.streams[Self.stream]?.consumed ?? 0
        fold.streams[Self.stream]?.consumed = (consumed / 4_096 + 1) * 4_096 - events
    }

    /// Replaces the state of the stream with a snapshot.
    mutating func load(_ snapshot: NaiveSnapshot) {
        fold.streams[Self.stream] = snapshot.state
    }

    /// Gives the object that reaches a limit a text with 65,529 to 65,536 runs. Some of the runs are where the next
    /// mark may put the horizon.
    mutating func splinter() {
        guard var stream = fold.streams[Self.stream], let (a, b) = stream.sites.keys.sorted().firstTwo else { return }
        var text = SharedText()
        let seq = fold.seq
        for number in 0..<(65_536 - random.below(8)) {
            let inserter = number.isMultiple(of: 2) ? Stamp(seq: seq, site: a) : Stamp(seq: seq - 3, site: b)
            text.append(Text(number.isMultiple(of: 3) ? "é" : "a"), by: inserter, deleters: [])
        }
        var field = Field(.null, by: Stamp(seq: seq, site: a))
        field.content = .shared(text)
        field.plainWriter = nil
        var object = stream.objects[big] ?? Object(seq: seq)
        object.seq = seq
        object.fields[Text("text")] = field
        stream.objects[big] = object
        stream.tombstones[big] = nil
        fold.streams[Self.stream] = stream
    }

    /// Makes the next record a barrier that ends the epoch, or an unknown barrier.
    mutating func end() {
        isEnding = true
    }

    var state: StreamState { fold.streams[key] ?? StreamState() }

    /// The index of the writer that rarely writes, so that the horizon passes its events.
    private var sleeper: Int { writers.count - 1 }

    private mutating func newWriter() -> Writer {
        let site = Site(high: random.next(), low: random.next())
        return Writer(site: site, by: random.oneIn(2) ? Text(random.pick(["ann", "böb", "c\"d"])) : nil)
    }

    private mutating func make(_ record: LogRecord) -> LogRecord {
        var record = record
        if seedsLeft > 0 {
            seedsLeft -= 1
            record.value = random.oneIn(40) ? event(at: record.seq) : seed()
            if seedsLeft == 0, random.oneIn(2) {
                record.key = Array("~reel".utf8)
                record.value = Array(#"{"open":true,"type":"barrier"}"#.utf8)
            }
            return record
        }
        if isEnding {
            isEnding = false
            record.key = Array("~reel".utf8)
            let barriers = [
                #"{"end":"00000000000000bb","type":"barrier"}"#, #"{"fold":2,"type":"barrier"}"#,
                #"{"end":"BB","type":"barrier"}"#, #"{ "type":"barrier"}"#, #"{"open":true,"type":"barrier","x":1}"#,
                #"{"retire":{"before":-1,"stream":"notes:1"},"type":"barrier"}"#,
                #"{"retire":{"before":1,"stream":"notes:1","x":1},"type":"barrier"}"#,
            ]
            record.value = Array(random.oneIn(2) ? barriers[0].utf8 : random.pick(barriers).utf8)
            return record
        }
        switch random.below(100) {
        case 0..<5 where !sent.isEmpty:
            let old = random.oneIn(2) ? sent[sent.count - 1] : random.pick(sent)
            (record.key, record.value) = (old.key, old.value)
        case 5..<8: return broken(record)
        case 8 where random.oneIn(3):
            record.key = Array("~reel".utf8)
            record.value = Array(random.pick([#"{"fold":1,"type":"barrier"}"#, #"{"fold":1}"#, "[]", "barrier"]).utf8)
        case 9 where random.oneIn(2):
            record.key = Array("~reel".utf8)
            record.value = retirement(at: record.seq)
        default: record.value = event(at: record.seq)
        }
        return record
    }

    // MARK: Events

    private mutating func event(at n: Int64) -> [UInt8] {
        let index = random.oneIn(20) ? sleeper : random.below(sleeper)
        let hasEnded = state.sites[writers[index].site].map { $0.end != -1 } ?? false
        if random.oneIn(hasEnded ? 4 : 100) { writers[index] = newWriter() }
        var writer = writers[index]
        switch random.below(100) {
        case 0..<50 where state.sites[writer.site] == nil && random.oneIn(3): break
        case 0..<50: writer.base = n - 1
        case 50..<75: break
        case 75..<93: writer.base += Int64(random.below(Int(max(1, n - writer.base))))
        case 93..<97: writer.base = max(-1, n - 1 - Int64(random.below(400)))
        default: writer.base = max(-1, writer.base - Int64(random.below(9)))
        }
        writer.base = min(writer.base, n - 1)
        writers[index] = writer
        var base = random.oneIn(100) ? n + Int64(random.below(3)) : writer.base
        if random.oneIn(index == sleeper ? 3 : 8) { base = baseAtMark(of: writer.site, at: n) ?? base }

        var op = (state.sites[writer.site]?.op ?? -1) + 1
        if random.oneIn(60) { op += Int64(1 + random.below(2)) }
        var by = writer.by
        if random.oneIn(80) { by = by == nil ? Text("eve") : nil }

        let author = Author(site: writer.site, base: base)
        var members: [JSON.Member] = [
            .init("base", .integer(base)), .init("op", .integer(op)), .init("site", .text(writer.site.text)),
        ]
        if let by { members.append(.init("by", .text(by))) }
        if random.oneIn(2) { members.append(.init("at", .integer(1_795_285_748_235))) }
        if random.oneIn(120) { members.append(.init("last", .bool(true))) }
        switch random.below(20) {
        case 0: members.append(.init("type", .string("noop")))
        case 1, 2:
            var parts: [JSON] = []
            for _ in 0...random.below(4) { parts.append(.object(part(author))) }
            members += [.init("type", .string("batch")), .init("events", .array(parts))]
        default: members += part(author)
        }
        return JSON.object(members).canonical
    }

    mutating func object() -> ObjectName {
        if let limit, limit == .bytes ? random.oneIn(3) : !random.oneIn(3) { return big }
        if !names.isEmpty, !random.oneIn(4) { return random.pick(names) }
        let name = ObjectName(
            model: Text(random.pick(["note", "task"])),
            id: Text(
                random.pick(["1", "2", "3", "é", "e\u{301}", "\"\\\u{7f}", "😀", "\u{fb33}", "\(random.below(90))"])
            )
        )
        names = names.suffix(7) + [name]
        return name
    }

    /// True if the history of a text of the object that reaches a limit was dropped.
    var hasFlattenedText: Bool {
        let fields = fold.streams[Self.stream]?.objects[big]?.fields ?? [:]
        return fields.values.contains { $0.plainWriter?.site == .nobody }
    }

    /// The weight of the texts of the object that reaches a limit.
    var weight: Int {
        let fields = fold.streams[Self.stream]?.objects[big]?.fields ?? [:]
        return fields.values.compactMap(\.sharedText).reduce(0) { $0 + $1.weight(above: state.horizon) }
    }

    /// The name of the object that reaches a limit.
    private var big: ObjectName { ObjectName(model: Text("big"), id: Text("1")) }

    private mutating func part(_ author: Author) -> [JSON.Member] {
        let isSleeper = author.site == writers[sleeper].site
        let isFirst = isSleeper && state.sites[author.site]?.r == -1
        if limit == nil, random.oneIn(isFirst ? 2 : 60) { return partOfManyTexts() }
        if random.oneIn(6), let part = partOfLostText(author) { return part }
        let name = object()
        isBig = name == big
        let object = state.objects[name]
        let type: String
        switch random.below(100) {
        case 0..<2 where !isKept: type = "delete"
        case 3..<(object == nil ? 70 : 8): type = "insert"
        default: type = "update"
        }
        var members: [JSON.Member] = [
            .init("type", .string(type)), .init("model", .text(name.model)), .init("id", .text(name.id)),
        ]
        var used: Set<Text> = []
        if type != "delete", isKept ? limit == .hidden && random.oneIn(30) : type == "insert" || random.oneIn(4) {
            var fields: [JSON.Member] = []
            for _ in 0..<random.below(4) {
                let field = fieldName()
                if used.insert(field).inserted { fields.append(.init(field, plainValue(field))) }
            }
            members.append(.init("fields", .object(fields)))
        }
        if type == "update", !random.oneIn(6) {
            var operations: [JSON.Member] = []
            for _ in 0...random.below(2) {
                let field = fieldName()
                guard used.insert(field).inserted else { continue }
                operations.append(.init(field, operation(field, object?.fields[field], author)))
            }
            members.append(.init("ops", .object(operations)))
        }
        if random.oneIn(8) {
            let field = fieldName()
            var seq = object?.fields[field]?.writer.seq ?? -1
            if random.oneIn(3) { seq = random.oneIn(2) ? -1 : seq + 1 }
            members.append(.init("if", .object([.init(field, .integer(seq))])))
        }
        return members
    }

    private mutating func fieldName() -> Text {
        if isKept { return Text(random.pick(["text", "text", "title"])) }
        return Text(random.pick(["text", "text", "text", "title", "count", "tags", "any", "😀", "\u{fb33}"]))
    }

    private mutating func plainValue(_ field: Text) -> JSON {
        if isHidden { return .string(words()) }
        if random.oneIn(8) { return .null }
        switch random.oneIn(10) ? "any" : field.string {
        case "text", "title": return .string(words())
        case "count": return .number(number())
        case "tags": return .array((0..<random.below(4)).map { _ in element() })
        default: return random.pick([.bool(true), .object([.init("a", .array([.null]))]), .string(""), .number(-0.5)])
        }
    }

    private mutating func number() -> Double {
        random.pick([1, -1, 0.1, 1e21, -2.5, 1e308, -1e308, 2.5e-300, 9_007_199_254_740_991])
    }

    private mutating func element() -> JSON {
        random.pick([
            .integer(1), .integer(10), .integer(9), .string("a"), .string("é"), .string("\u{1}"), .null, .bool(false),
            .array([]), .object([.init("b", .integer(1)), .init("a", .integer(2))]),
        ])
    }

    private mutating func words() -> String {
        let isLong = isBig && limit != .runs && (isHidden ? random.oneIn(2) : !random.oneIn(3))
        if isLong { return String(repeating: "0123456789", count: 26_000) }
        return switch random.below(40) {
        case 0: String(repeating: "paste\n", count: 1 + random.below(60))
        case 1..<4: ""
        default:
            (0...random.below(4)).map { _ in random.pick(["a", "b", "c", "é", "\u{301}", "😀", "\"", "\n", "\u{0}"]) }
                .joined()
        }
    }

    private mutating func operation(_ name: Text, _ field: Field?, _ author: Author) -> JSON {
        switch random.oneIn(25) ? random.pick(["text", "count", "tags"]) : name.string {
        case "count":
            return .object([.init("inc", .number(number()))])
        case "tags":
            var members: [JSON.Member] = []
            if !random.oneIn(3) {
                members.append(.init("remove", .array((0..<random.below(3)).map { _ in element() })))
            }
            if members.isEmpty || random.oneIn(2) {
                members.append(.init("add", .array((0..<random.below(4)).map { _ in element() })))
            }
            return .object(members)
        default:
            var length = field?.sharedText?.length(to: author) ?? 0
            let triples: [JSON] = (0..<(random.oneIn(4) ? 1 + random.below(4) : 1)).map { _ in
                let removesAll = isHidden && random.oneIn(2)
                let offset = removesAll ? 0 : random.below(length + 1)
                var removed = random.oneIn(2) ? 0 : random.below(min(length - offset, random.oneIn(9) ? 500 : 5) + 1)
                if removesAll { removed = length }
                if random.oneIn(50) { removed = length - offset + 1 }
                let text = words()
                length += text.unicodeScalars.count - removed
                length = max(0, length)
                return .array([.integer(Int64(offset)), .integer(Int64(removed)), .string(text)])
            }
            return .object([.init("splice", .array(triples))])
        }
    }

    // MARK: Seeds and invalid records

    private mutating func seed() -> [UInt8] {
        let line: [JSON.Member]
        switch random.below(20) {
        case 0..<3: line = [.init("retired", .bool(!random.oneIn(9)))]
        case 3..<7:
            let writer = random.pick(writers)
            line =
                [
                    .init("site", .text(writer.site.text)), .init("op", .integer(Int64(random.below(9)))),
                    .init("end", .integer(random.oneIn(5) ? 7 : -1)),
                ] + (writer.by.map { [.init("by", .text($0))] } ?? [])
        case 7..<11:
            line = [.init("deleted", .array([.string("note"), .string(random.pick(["1", "9"]))]))]
        default:
            let fields = Set((0..<random.below(4)).map { _ in fieldName() }).sorted().map { name in
                let value = plainValue(name)
                return JSON.Member(
                    name,
                    .array([
                        value.isNull && !random.oneIn(9) ? .integer(1) : value, .text(random.pick(writers).site.text),
                    ])
                )
            }
            let name = object()
            line = [.init("object", .array([.text(name.model), .text(name.id)])), .init("fields", .object(fields))]
        }
        return JSON.object([.init("line", .object(line)), .init("type", .string("seed"))]).canonical
    }

    private mutating func broken(_ record: LogRecord) -> LogRecord {
        var record = record
        record.value = event(at: record.seq)
        switch random.below(8) {
        case 0: record.key = Array(random.pick(["", "~reel", "~x", "..", "a b", "é"]).utf8)
        case 1: record.value = seed()
        case 2, 3:
            // A member is missing, has another type, or is not expected.
            guard case .object(var members)? = try? JSON(reading: record.value, depth: 40) else { break }
            let index = random.below(members.count)
            let strange: JSON = random.pick([
                .null, .integer(-1), .number(0.5), .string(""), .bool(false), .array([]), .object([]), .integer(0),
            ])
            if random.oneIn(3) {
                members.remove(at: index)
            } else {
                let name =
                    random.oneIn(2) ? members[index].name : Text(random.pick(["seq", "by", "at", "last", "if", "x"]))
                members.removeAll { $0.name == name }
                members.append(.init(name, strange))
            }
            record.value = JSON.object(members).canonical
        default:
            for _ in 0...random.below(2) where !record.value.isEmpty {
                let index = random.below(record.value.count)
                switch random.below(3) {
                case 0: record.value[index] = UInt8(truncatingIfNeeded: random.next())
                case 1: record.value.remove(at: index)
                default: record.value.insert(random.pick(Array(" \"{}[],:0-\\u".utf8)), at: index)
                }
            }
        }
        return record
    }
}

extension [Site] {
    fileprivate var firstTwo: (Site, Site)? { count < 2 ? nil : (self[0], self[1]) }
}
