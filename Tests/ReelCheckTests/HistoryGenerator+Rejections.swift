import TestSupport

@testable import ReelCheck

// What meets the rules of rejected texts and of retired sites.
extension HistoryGenerator {
    /// A base beside one of the site's marks; nil if it has none.
    mutating func baseAtMark(of site: Site, at n: Int64) -> Int64? {
        guard let known = state.sites[site] else { return nil }
        if known.r >= 0, known.r <= state.horizon { return known.r - 1 }
        let marks = (known.lost.values + [known.r]).filter { $0 >= 0 }.sorted()
        guard !marks.isEmpty else { return nil }
        return min(n - 1, random.pick(marks) + random.pick([-1, -1, 0, 1]))
    }

    /// An update of a text that the site has lost; nil if there is none.
    mutating func partOfLostText(_ author: Author) -> [JSON.Member]? {
        let lost = (state.sites[author.site]?.lost ?? [:]).keys.sorted()
        guard !lost.isEmpty else { return nil }
        let name = random.pick(lost)
        // What is deleted stays lost, and is not all there is to try.
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
        // Another text of the same object beside it now and then, which is lost or not.
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

    /// An update of so many texts that a site keeps no mark for each, guarded so that it is rejected as a rule.
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

    /// A barrier that retires sites.
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
