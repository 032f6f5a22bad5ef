import TestSupport
import Testing

@testable import ReelLab

/// Tests that every quantile is exact to one part in 128, for values of any size, in any order of adding.
@Suite struct LatencyHistogramTests {
    @Test("quantiles are within one part in 128") func quantilesAreWithinOne() {
        var random = SeededNumbers(TestSeed.value)
        for highest in [100, 10_000, 10_000_000, Int64.max / 2] {
            let values = (0..<5_000).map { _ in Int64.random(in: 0...highest, using: &random) }.sorted()
            var histogram = LatencyHistogram()
            for value in values { histogram.add(value) }
            for part in [0.0, 0.01, 0.5, 0.9, 0.99, 0.999, 1] {
                let exact = Double(values[max(0, Int((part * 5_000).rounded(.up)) - 1)])
                let found = Double(histogram.quantile(part))
                #expect(found >= exact && found <= exact * (1 + 1 / 128) + 1, "\(highest) \(part)")
            }
            #expect(histogram.max == UInt64(values[4_999]))
            #expect(histogram.count == 5_000)
        }
    }

    @Test("two added are one of all") func twoAddedAreOne() {
        var (a, b, all) = (LatencyHistogram(), LatencyHistogram(), LatencyHistogram())
        for value in 0..<2_000 as Range<Int64> {
            if value.isMultiple(of: 3) { a.add(value * value) } else { b.add(value * value) }
            all.add(value * value)
        }
        a.add(b)
        #expect(a.quantile(0.5) == all.quantile(0.5) && a.quantile(0.99) == all.quantile(0.99))
        #expect(a.count == all.count && a.max == all.max && abs(a.mean - all.mean) < 1)
        #expect(a.filled.map(\.count).reduce(0, +) == 2_000)
    }

    @Test("nothing and too little are zero") func nothingAndTooLittle() {
        var histogram = LatencyHistogram()
        #expect(histogram.quantile(0.99) == 0 && histogram.max == 0 && histogram.mean == 0)
        histogram.add(-5)
        #expect(histogram.quantile(1) == 0 && histogram.count == 1)
        histogram.add(.max)
        #expect(histogram.quantile(1) == UInt64(Int64.max))
    }
}
