/// A set of seqs or ops as sorted, disjoint ranges. Numbers are nearly always inserted in ascending order.
struct Coverage: Sendable {
    private var ranges: [ClosedRange<Int64>] = []

    /// The highest number; nil if the set is empty.
    var last: Int64? { ranges.last?.upperBound }

    mutating func insert(_ range: ClosedRange<Int64>) {
        if let last = ranges.last, last.upperBound + 1 == range.lowerBound {
            ranges[ranges.count - 1] = last.lowerBound...range.upperBound
            return
        }
        var merged = range
        var index = ranges.count
        while index > 0, ranges[index - 1].lowerBound > range.upperBound + 1 { index -= 1 }
        var low = index
        while low > 0, ranges[low - 1].upperBound >= range.lowerBound - 1 {
            low -= 1
            merged = min(merged.lowerBound, ranges[low].lowerBound)...max(merged.upperBound, ranges[low].upperBound)
        }
        ranges.replaceSubrange(low..<index, with: CollectionOfOne(merged))
    }

    mutating func formUnion(_ other: Coverage) {
        for range in other.ranges { insert(range) }
    }

    func contains(_ number: Int64) -> Bool {
        // Search the first range that ends at or after `number`.
        var (low, high) = (0, ranges.count)
        while low < high {
            let middle = (low + high) / 2
            if ranges[middle].upperBound < number { low = middle + 1 } else { high = middle }
        }
        return low < ranges.count && ranges[low].lowerBound <= number
    }

    /// Returns the number of elements that are not in `other`.
    func count(outside other: Coverage) -> Int64 {
        var count: Int64 = 0
        var others = other.ranges[...]
        for range in ranges {
            var next = range.lowerBound
            while let other = others.first, other.lowerBound <= range.upperBound {
                count += max(0, other.lowerBound - next)
                next = max(next, other.upperBound + 1)
                guard other.upperBound <= range.upperBound else { break }
                others.removeFirst()
            }
            count += max(0, range.upperBound - next + 1)
        }
        return count
    }

    /// Returns the last seq of the contiguous run that begins directly after `seq`; `seq` if there is none.
    func contiguous(after seq: Int64) -> Int64 {
        ranges.first { $0.lowerBound <= seq + 1 && $0.upperBound > seq }?.upperBound ?? seq
    }
}
