import TestSupport
import Testing

@testable import ReelCore

/// Tests that the fold tolerates stored rows that were changed after they were written.
@Suite struct RowDamageTests {
    @Test("the fold reads damaged rows and continues without a trap", arguments: 0..<8)
    func damagedRows(number: UInt64) throws {
        var history = FoldHistory(seed: TestSeed.value &+ number)
        for step in 0..<300 {
            if step % 70 == 50 { history.jump() }
            history.step()
        }
        var store = RowStore()
        history.withFold { store.writeAll(&$0) }
        var fold = history.fold
        let digest = fold.digest()
        var future = history
        let records = (0..<40).map { _ in future.step() }
        var random = SeededNumbers(TestSeed.value &+ 77 &+ number)
        var unseen = 0
        for _ in 0..<400 * effort {
            guard var loaded = try? Self.damaged(store, &random).load() else { continue }
            // The digest does not cover the deleted elements of a text, so some damage leaves it unchanged.
            guard loaded.digest() == digest else { continue }
            unseen += 1
            var event = ParsedEvent()
            for record in records { _ = loaded.fold(record.value, seq: record.seq, &event) }
            _ = loaded.digest()
            _ = try loaded.lines()
        }
        #expect(unseen > 0)
    }

    private static func damaged(_ store: RowStore, _ random: inout SeededNumbers) -> RowStore {
        var store = store
        switch Int.random(in: 0..<8, using: &random) {
        case 0: damage(&store.head, &random)
        case 1:
            guard let site = store.sites.keys.sorted().randomElement(using: &random) else { break }
            damage(&store.sites[site, default: []], &random)
        case 2:
            let keys = store.objects.keys.sorted { $0.lexicographicallyPrecedes($1) }
            guard var key = keys.randomElement(using: &random) else { break }
            let row = store.objects.removeValue(forKey: key)
            damage(&key, &random)
            store.objects[key] = row
        case 3: store.seq = random.pick([-1, 0, store.seq - 9, largestInteger])
        default:
            let keys = store.objects.keys.sorted { $0.lexicographicallyPrecedes($1) }
            guard let key = keys.randomElement(using: &random) else { break }
            damage(&store.objects[key, default: []], &random)
        }
        return store
    }

    private static func damage(_ bytes: inout [UInt8], _ random: inout SeededNumbers) {
        guard !bytes.isEmpty else { return }
        let start = Int.random(in: 0..<bytes.count, using: &random)
        let end = min(bytes.count, start + Int.random(in: 1...20, using: &random))
        switch Int.random(in: 0..<6, using: &random) {
        case 0: bytes[start] = random.pick([0, 1, 2, 0x7F, 0x80, 0xFF, 0x30, 0x39])
        case 1: bytes.removeSubrange(start..<end)
        case 2: bytes.insert(contentsOf: bytes[start..<end], at: start)
        case 3: bytes[start] ^= 1 << UInt8.random(in: 0..<8, using: &random)
        case 4: bytes.insert(contentsOf: [0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x7F], at: start)
        default: bytes = Array(bytes.prefix(start))
        }
    }
}
