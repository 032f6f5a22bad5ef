import TestSupport
import Testing

@testable import ReelCore

@Suite struct FoldObjectTableTests {
    @Test("objects are found after any insertions and removals around them")
    func model() {
        var random = SeededNumbers(TestSeed.value &+ 6_000)
        var table = ObjectTable()
        var slots: [String: Int] = [:]
        for _ in 0..<3_000 {
            let id = String(Int.random(in: 0..<300, using: &random))
            JSONText.withEscaped("m") { model in
                JSONText.withEscaped(id) { key in
                    #expect(table.find(model: model, id: key) == slots[id])
                    if let slot = slots[id] {
                        table.remove(slot)
                        slots[id] = nil
                    } else {
                        slots[id] = table.insert(model: model, id: key, seq: 0)
                    }
                }
            }
        }
        #expect(table.count == slots.count)
        for (id, slot) in slots { #expect(Array(table[slot].id) == Array(id.utf8)) }
    }
}
