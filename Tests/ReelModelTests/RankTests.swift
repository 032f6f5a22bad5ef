import ReelClient
import TestSupport
import Testing

@testable import Reel

/// Fractional indexes: an order that is dense, total and short.
@Suite struct RankTests {
    @Test("a rank is between its neighbors, whatever was inserted before", arguments: 0..<20)
    func between(number: UInt64) throws {
        var random = SeededNumbers(TestSeed.given(or: number))
        var ranks: [Rank] = []
        for _ in 0..<300 {
            // Half of the insertions are at one place, which makes the longest ranks.
            let place = random.oneIn(2) ? ranks.count / 2 : random.below(ranks.count + 1)
            let (lower, upper) = (place > 0 ? ranks[place - 1] : nil, place < ranks.count ? ranks[place] : nil)
            let rank = Rank.between(lower, upper, using: &random)
            if let lower { #expect(lower < rank) }
            if let upper { #expect(rank < upper) }
            #expect(Rank(rank.text) == rank)
            #expect(try Rank(json: try rank.json()) == rank)
            ranks.insert(rank, at: place)
        }
        #expect(ranks == ranks.sorted() && Set(ranks).count == ranks.count)
    }

    @Test("a list that grows at an end has short ranks, and a gap that is halved has longer ones") func lengths() {
        var random = SeededNumbers(1)
        var (first, last): (Rank?, Rank?)
        for _ in 0..<10_000 {
            last = .between(last, nil, using: &random)
            first = .between(nil, first, using: &random)
        }
        #expect((last?.text.count ?? 99) <= 11 && (first?.text.count ?? 99) <= 11)
        var lower = Rank.between(nil, nil, using: &random)
        let upper = Rank.between(lower, nil, using: &random)
        for _ in 0..<1_000 { lower = .between(lower, upper, using: &random) }
        #expect(lower < upper && lower.text.count <= 260)
    }

    @Test("two devices that insert at one place make two ranks, and there is a place between them") func twoDevices() {
        let (lower, upper) = (Rank.between(nil, nil), Rank.between(.between(nil, nil), nil))
        let ranks = (0..<100).map { _ in Rank.between(lower, upper) }.sorted()
        #expect(Set(ranks).count == 100)
        for (lower, upper) in zip(ranks, ranks.dropFirst()) {
            let rank = Rank.between(lower, upper)
            #expect(lower < rank && rank < upper)
        }
    }

    @Test("neighbors in the wrong order give a rank directly above the first") func wrongOrder() {
        let (low, high) = (Rank.between(nil, nil), Rank.between(.middle, nil))
        let rank = Rank.between(high, low)
        #expect(high < rank && rank < .between(high, nil))
        #expect(high < .between(high, high))
    }

    @Test("the first and the last rank of all have neighbors") func ends() throws {
        let last = try #require(Rank("z" + String(repeating: "z", count: 26)))
        #expect(last < .between(last, nil))
        let first = try #require(Rank("A" + String(repeating: "0", count: 26) + "1"))
        #expect(.between(nil, first) < first)
        for text in ["Zz", "a0", "az", "b00", "YzzV", "Z0"] {
            let rank = try #require(Rank(text))
            let (below, above) = (Rank.between(nil, rank), Rank.between(rank, nil))
            #expect(below < rank && rank < above && below < above)
            #expect(rank < .between(rank, above) && .between(below, rank) < rank)
        }
    }

    @Test(
        "a text that is no rank is refused",
        arguments: ["", "a", "0", "b0", "a0V0", "a0-", "é", "A" + String(repeating: "0", count: 26)]
    )
    func notRanks(text: String) {
        #expect(Rank(text) == nil)
    }

    @Test("a rank of absurd length is refused when it is read and when it is written") func absurd() throws {
        let long = "a0" + String(repeating: "1", count: 1_023)
        #expect(Rank(long) == nil)
        #expect(throws: FieldValueError.self) { try Rank(json: .string(long)) }
        let longest = try #require(Rank("a0" + String(repeating: "1", count: 1_022)))
        #expect(throws: FieldValueError.self) { try Rank.between(longest, longest).json() }
    }
}
