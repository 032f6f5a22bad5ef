import TestSupport

@testable import ReelCheck

// Events and barriers that trigger the rules about rejected texts and retired sites.
extension HistoryGenerator {
    /// Returns a base next to one of the site's marks, or nil if the site has none.
    mutating func baseAtMark(of site: Site, at n: Int64) -> Int64? {
        guard let known = state.sites[site] else { return nil }
        if known.r >= 0, known.r <= state.horizon { return known.r - 1 }
        let marks = (known.lost.values + [known.r]).filter { $0 >= 0 }.sorted()
        guard !marks.isEmpty else { return nil }
        return min(n - 1, random.pick(marks) + random.pick([-1, -1, 0, 1]))
    }

    /// Returns an update of a text that the site has lost, or nil if there is none.
    mutating func partOfLostText(_ author: Author) -> [JSON.Member]? {
        let lost = (state.sites[author.site]?.lost ?? [:]).keys.sorted()
        guard !lost.isEmpty else { return nil }
        let name = random.pick(lost)
        // A field of a deleted object stays lost. It is tried less often, so that other fields are tried too.
        if state.tombstones[name.object] != nil, !random.oneIn(8) { return nil }
        var members: [JSON.Member] = [
            .init("type", .string("update")), .init("model", .text(name.object.model)),
            .init("id", .text(name.object.id)),
        ]
        if random.oneIn(4) {
            let value: JSON = random.pick([.string("again"), .null, .integer(1)])
            members.append(.init("fields", .object([.init(name.field, value)])))
            return members
        }
        // Sometimes the update includes another text of the same object, lost or not.
        let others = lost.filter { $0.object == name.object && $0.field != name.field }.map(\.field)
        let other = others.isEmpty || random.oneIn(2) ? Text("text") : random.pick(others)
        let names = other == name.field || !random.oneIn(3) ? [name.field] : [name.field, other]
        let operations = names.map { field in
            let length = state.objects[name.object]?.fields[field]?.sharedText?.length(to: author) ?? 0
            let triple: [JSON] = [.integer(Int64(random.below(length + 1))), .integer(0), .string("y")]
            return JSON.Member(field, .object([.init("splice", .array([.array(triple)]))]))
        }
        members.append(.init("ops", .object(operations)))
        return members
    }

    /// Returns an update of 8 to 19 texts with a guard that fails, because a site keeps at most 16 separate marks.
    mutating func partOfManyTexts() -> [JSON.Member] {
        let name = object()
        let fields = (0..<(8 + random.below(12))).map { number in
            JSON.Member("t\(number)", random.pick([.string("many"), .string(""), .null]))
        }
        return [
            .init("type", .string("update")), .init("model", .text(name.model)), .init("id", .text(name.id)),
            .init("fields", .object(fields)), .init("if", .object([.init("title", .integer(largestInteger))])),
        ]
    }

    /// Returns a barrier that retires sites.
    mutating func retirement(at n: Int64) -> [UInt8] {
        let seqs = state.sites.values.map(\.seq).sorted()
        let before: Int64
        switch random.below(6) {
        case 0: before = 0
        case 1: before = random.oneIn(2) ? n : largestInteger
        default: before = max(0, (seqs.isEmpty ? n : random.pick(seqs)) - Int64(random.below(2)))
        }
        let stream = random.oneIn(5) ? random.pick([Self.otherStream, Text("without-events")]) : Self.stream
        return JSON.object([
            .init("retire", .object([.init("before", .integer(before)), .init("stream", .text(stream))])),
            .init("type", .string("barrier")),
        ]).canonical
    }
}
