import ReelCore
import Testing

@testable import ReelCheck

@Suite struct LostTextLimitTests {
    private struct BothFolds {
        var naive = NaiveFold(epoch: "00000000000000aa", partition: 0, of: 1)
        var real = RealPartition(epoch: Epoch(0xaa))
        private var ops: [Int: Int64] = [:]

        /// Folds an update of object 1 by a site that has read everything. Returns the outcome.
        mutating func update(_ site: Int, _ fields: [String: JSON] = [:], splice: String? = nil) -> String {
            let seq = naive.seq + 1
            let op = ops[site, default: -1] + 1
            ops[site] = op
            let triple = JSON.array([.integer(0), .integer(0), .string("x")])
            let operations = splice.map { [JSON.Member($0, .object([.init("splice", .array([triple]))]))] } ?? []
            let value = JSON.object([
                .init("base", .integer(seq - 1)), .init("op", .integer(op)), .init("type", .string("update")),
                .init("site", .text(Site(high: 1, low: UInt64(site)).text)), .init("model", .string("note")),
                .init("id", .string("1")), .init("ops", .object(operations)),
                .init("fields", .object(fields.map { .init($0.key, $0.value) })),
            ]).canonical
            let judgement = naive.apply(seq: seq, key: Array("todo".utf8), value: value)
            let outcome = real.apply(LogRecord(seq: seq, key: Array("todo".utf8), value: value)).description
            #expect(outcome == judgement?.description)
            return outcome
        }

        func state(_ site: Int) -> ReelCheck.SiteState? {
            naive.streams[Text("todo")]?.sites[Site(high: 1, low: UInt64(site))]
        }

        var lostCount: Int { naive.streams[Text("todo")]?.sites.values.reduce(0) { $0 + $1.lost.count } ?? 0 }
    }

    @Test("a stream keeps 1,024 rejected texts, and the site that goes beyond keeps one mark for all of its own")
    func limitOfStream() throws {
        var folds = BothFolds()
        let texts = Dictionary(uniqueKeysWithValues: (0..<16).map { ("t\($0)", JSON.string("x")) })
        for site in 0..<64 {
            #expect(folds.update(site, texts) == "rejected(no_object)")
            #expect(folds.state(site)?.lost.count == 16)
        }
        #expect(folds.lostCount == 1_024)
        #expect(folds.update(64, ["t": .null]) == "rejected(no_object)")
        #expect(folds.state(64)?.r == 64 && folds.state(64)?.lost.isEmpty == true)
        #expect(folds.lostCount == 1_024)

        // A second rejection of the same text adds no mark.
        #expect(folds.update(3, ["t3": .string("again")]) == "rejected(no_object)")
        #expect(folds.state(3)?.lost.count == 16 && folds.state(3)?.r == -1)
        // The 17th mark of a site replaces its 16 marks by `r`, and so leaves room in the stream.
        #expect(folds.update(3, ["t": .string("one more")]) == "rejected(no_object)")
        #expect(folds.state(3)?.r == 66 && folds.state(3)?.lost.isEmpty == true)
        #expect(folds.lostCount == 1_008)
        for number in 0..<16 { _ = folds.update(65, ["t\(number)": .string("x")]) }
        #expect(folds.state(65)?.lost.count == 16 && folds.lostCount == 1_024)
        #expect(folds.update(66, ["t": .string("x")]) == "rejected(no_object)")
        #expect(folds.state(66)?.lost.isEmpty == true)

        #expect(folds.real.digest(of: "todo") == folds.naive.digest(of: "todo"))
        let lines = try folds.real.lines(of: "todo", after: -1)
        #expect(try NaiveSnapshot(lines).normalForm == folds.naive.normalForm(of: "todo"))
        #expect(folds.update(3, splice: "title") == "rejected(no_object)")
    }
}
