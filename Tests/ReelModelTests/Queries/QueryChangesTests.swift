import TestSupport
import Testing

@testable import Reel

/// The pure parts of queries.
@Suite struct QueryChangesTests {
    private func object(_ number: Int, _ votes: Int) -> LoadedObject {
        var job = Job(id: ModelID("\(number)"))
        job.votes = votes
        return TypedObject(job, isPending: false)
    }

    @Test("the changes between two lists, applied to the first, give the second") func changes() {
        Seeds.run(3_000) { seed in
            var random = SeededNumbers(seed)
            let pool = (0..<12).map { object($0, 0) }
            let old = Array(pool.shuffled(using: &random).prefix(random.below(13)))
            var new = old
            for _ in 0..<random.below(5) {
                switch random.below(4) {
                case 0: if !new.isEmpty { new.remove(at: random.below(new.count)) }
                case 1:
                    guard let added = pool.first(where: { object in !new.contains { $0.key == object.key } }) else {
                        break
                    }
                    new.insert(added, at: random.below(new.count + 1))
                case 2:
                    if !new.isEmpty {
                        new.insert(new.remove(at: random.below(new.count)), at: random.below(new.count + 1))
                    }
                default:
                    let place = random.below(new.count)
                    if !new.isEmpty { new[place] = TypedObject(new[place].value(Job.self), isPending: false) }
                }
            }
            let changes = QueryChanges(from: old, to: new)
            #expect(changes.applied(to: old, new) { $0 === $1 }, "REEL_SEED=\(seed)")
            #expect(QueryChanges(from: new, to: new).isEmpty)
        }
    }

    @Test("one moved row is one move") func move() {
        let old = (0..<9).map { object($0, 0) }
        var new = old
        new.insert(new.remove(at: 1), at: 7)
        #expect(QueryChanges(from: old, to: new) == QueryChanges(moves: [.init(from: 1, to: 7)]))
        #expect(QueryChanges(from: new, to: old) == QueryChanges(moves: [.init(from: 7, to: 1)]))
    }

    @Test("a list in chunks holds the same objects in the same order as an array") func chunks() throws {
        try Seeds.run(20) { seed in
            var random = SeededNumbers(seed)
            // A `<` that contradicts itself must not lose objects.
            let isWrong = random.oneIn(4)
            let precedes: @Sendable (Int, Int) -> Bool = { isWrong ? ($0 ^ $1) & 5 > 1 : $0 < $1 }
            let order = ObjectOrder(keys: [SortKey(\Job.votes, isDescending: random.oneIn(2), precedes)])
            var array: [LoadedObject] = []
            var chunks = SortedChunks(sorted: array, by: order)
            for number in 0..<3_000 {
                if random.oneIn(3), !array.isEmpty {
                    let object = array.remove(at: random.below(array.count))
                    chunks.remove(object)
                } else {
                    let object = object(number, random.below(500))
                    array.append(object)
                    chunks.insert(object)
                }
            }
            let listed = chunks.first(.max)
            #expect(chunks.count == array.count && listed.count == array.count, "REEL_SEED=\(seed)")
            #expect(Set(listed.map(\.key)) == Set(array.map(\.key)), "REEL_SEED=\(seed)")
            if isWrong { return }
            array.sort(by: order.precedes)
            #expect(listed.elementsEqual(array, by: ===), "REEL_SEED=\(seed)")
            #expect(order.sorted(array.sorted { $0.key < $1.key }).elementsEqual(array, by: ===), "REEL_SEED=\(seed)")
            let some = order.first(20, of: array.sorted { $0.key < $1.key })
            #expect(some.elementsEqual(array.prefix(20), by: ===), "REEL_SEED=\(seed)")
            #expect(chunks.first(20).elementsEqual(array.prefix(20), by: ===), "REEL_SEED=\(seed)")
            let place = random.below(array.count)
            var rest: [LoadedObject] = []
            try chunks.forEach(after: { !order.precedes(array[place], $0) }) { object in
                rest.append(object)
                return rest.count < 30
            }
            #expect(rest.elementsEqual(array.dropFirst(place + 1).prefix(30), by: ===), "REEL_SEED=\(seed)")
        }
    }
}

extension QueryChanges {
    /// Applies the changes to the former rows as documented, and returns true if the result is `new`. Values that are
    /// not inserted or updated must be the former ones.
    func applied<Row>(to old: [Row], _ new: [Row], _ isEqual: (Row, Row) -> Bool) -> Bool {
        let gone = Set(removals + moves.map(\.from))
        guard gone.count == removals.count + moves.count, gone.allSatisfy(old.indices.contains) else { return false }
        var rows = old.indices.filter { !gone.contains($0) }.map { old[$0] }
        let placed = insertions.map { ($0, new[$0]) } + moves.map { ($0.to, old[$0.from]) }
        for (offset, row) in placed.sorted(by: { $0.0 < $1.0 }) {
            guard offset <= rows.count else { return false }
            rows.insert(row, at: offset)
        }
        guard rows.count == new.count else { return false }
        for offset in updates { rows[offset] = new[offset] }
        return zip(rows, new).allSatisfy(isEqual)
    }
}
