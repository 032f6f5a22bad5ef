import ReelCore
import TestSupport
import Testing

@Suite struct SeqRangesTests {
    @Test("finds the gap that a device missed") func findsTheGapThat() {
        let covered = SeqRanges([0...9, 15...15])
        #expect(covered.gaps(in: 0...15) == SeqRanges([10...14]))
        #expect(covered.contiguous(after: -1) == 9)
        #expect(covered.description == "[0…9, 15…15]")
    }

    @Test("the largest numbers do not trap") func theLargestNumbersDo() {
        var ranges = SeqRanges([Int64.min...Int64.max])
        #expect(ranges.count == .max && ranges.contiguous(after: 0) == .max && ranges.contiguous(after: .max) == .max)
        ranges.subtract(Int64.max...Int64.max)
        ranges.subtract(Int64.min...Int64.min)
        ranges.insert(Int64.max)
        ranges.insert(Int64.min)
        #expect(ranges == SeqRanges([Int64.min...Int64.max]))
    }

    @Test("agrees with a bitset") func agreesWithABitset() {
        var random = SeededNumbers(TestSeed.value)
        for _ in 0..<100 * effort {
            var (ranges, bits) = (SeqRanges(), Set<Seq>())
            for _ in 0..<30 {
                let low = Int64.random(in: -1...60, using: &random)
                let range = low...low + Int64.random(in: 0...8, using: &random)
                switch Int.random(in: 0..<6, using: &random) {
                case 0:
                    ranges.subtract(range)
                    bits.subtract(range)
                case 1:
                    var other = SeqRanges([range])
                    other.insert(low + 12)
                    ranges.formUnion(other)
                    bits.formUnion(range)
                    bits.insert(low + 12)
                case 2:
                    let other = SeqRanges([range, low + 10...low + 30])
                    ranges = ranges.intersection(other)
                    bits = bits.filter { other.contains($0) }
                default:
                    ranges.insert(range)
                    bits.formUnion(range)
                }
                let seqs = ranges.ranges.flatMap { Array($0) }
                #expect(seqs == bits.sorted(), "REEL_SEED=\(TestSeed.value)")
                #expect(zip(ranges.ranges, ranges.ranges.dropFirst()).allSatisfy { $0.upperBound + 1 < $1.lowerBound })
                #expect(ranges.count == bits.count)
                #expect(ranges.contains(range) == range.allSatisfy(bits.contains))
                let end = sequence(first: low) { bits.contains($0 + 1) ? $0 + 1 : nil }.suffix(1)[0]
                #expect(ranges.contiguous(after: low) == end, "REEL_SEED=\(TestSeed.value)")
                #expect(ranges.gaps(in: range).ranges.flatMap { Array($0) } == range.filter { !bits.contains($0) })
                #expect(
                    (-2...100).allSatisfy { ranges.contains($0) == bits.contains($0) },
                    "REEL_SEED=\(TestSeed.value)"
                )
            }
        }
    }
}
