import ReelBase

/// A set of seqs as sorted, disjoint, closed ranges that do not touch: the seqs that a client or node holds, proven
/// frame by frame. To add at the end, which is the usual case, costs one comparison.
public struct SeqRanges: Hashable, Sendable {
    /// The ranges in ascending order, with at least one missing seq between two of them.
    public private(set) var ranges: [ClosedRange<Seq>]

    /// Creates an empty set.
    public init() {
        ranges = []
    }

    /// Creates the set of the seqs of these ranges. The ranges may have any order and may overlap.
    public init(_ ranges: some Sequence<ClosedRange<Seq>>) {
        self.init()
        for range in ranges { insert(range) }
    }

    /// True if the set is empty.
    public var isEmpty: Bool { ranges.isEmpty }

    /// The number of seqs; `Int64.max` if there are more.
    public var count: Int64 {
        ranges.reduce(0) { count, range in
            let (width, tooWide) = range.upperBound.subtractingReportingOverflow(range.lowerBound)
            let (sum, tooMany) = count.addingReportingOverflow(width)
            return tooWide || tooMany || sum == .max ? .max : sum + 1
        }
    }

    /// The lowest seq.
    public var first: Seq? { ranges.first?.lowerBound }

    /// The highest seq.
    public var last: Seq? { ranges.last?.upperBound }

    /// True if the seq is in the set.
    public func contains(_ seq: Seq) -> Bool {
        let index = firstIndex(endingAtOrAfter: seq)
        return index < ranges.count && ranges[index].lowerBound <= seq
    }

    /// True if all seqs of the range are in the set.
    public func contains(_ range: ClosedRange<Seq>) -> Bool {
        let index = firstIndex(endingAtOrAfter: range.upperBound)
        return index < ranges.count && ranges[index].lowerBound <= range.lowerBound
    }

    /// Returns the last seq of the contiguous run that begins directly after `after`; `after` if there is none.
    public func contiguous(after: Seq) -> Seq {
        guard after < .max else { return after }
        let index = firstIndex(endingAtOrAfter: after + 1)
        return index < ranges.count && ranges[index].lowerBound <= after + 1 ? ranges[index].upperBound : after
    }

    /// Returns the seqs of `range` that are missing in the set, and therefore have to be fetched.
    public func gaps(in range: ClosedRange<Seq>) -> SeqRanges {
        SeqRanges(CollectionOfOne(range)).subtracting(self)
    }

    // MARK: Changing

    /// Adds the seqs of a range.
    public mutating func insert(_ range: ClosedRange<Seq>) {
        guard let end = ranges.last else {
            ranges.append(range)
            return
        }
        if range.lowerBound >= end.lowerBound {
            if touches(end, range) {
                ranges[ranges.count - 1] = end.lowerBound...max(end.upperBound, range.upperBound)
            } else {
                ranges.append(range)
            }
            return
        }
        // Merge from the first range that overlaps or touches this one to the last such range.
        let reach = range.lowerBound == .min ? .min : range.lowerBound - 1
        let low = firstIndex(endingAtOrAfter: reach)
        var (high, merged) = (low, range)
        while high < ranges.count, touches(ranges[high], merged) {
            merged = min(merged.lowerBound, ranges[high].lowerBound)...max(merged.upperBound, ranges[high].upperBound)
            high += 1
        }
        ranges.replaceSubrange(low..<high, with: CollectionOfOne(merged))
    }

    /// Adds one seq.
    public mutating func insert(_ seq: Seq) {
        insert(seq...seq)
    }

    /// Adds the seqs of another set.
    public mutating func formUnion(_ other: SeqRanges) {
        for range in other.ranges { insert(range) }
    }

    /// Returns the seqs that are in this set and not in `other`.
    public func subtracting(_ other: SeqRanges) -> SeqRanges {
        var result = SeqRanges()
        guard let first else { return result }
        var index = other.firstIndex(endingAtOrAfter: first)
        for range in ranges {
            var low = range.lowerBound
            var isLeft = true
            while index < other.ranges.count, other.ranges[index].lowerBound <= range.upperBound {
                let hole = other.ranges[index]
                if hole.lowerBound > low { result.ranges.append(low...hole.lowerBound - 1) }
                guard hole.upperBound < range.upperBound else {
                    isLeft = false
                    break
                }
                low = max(low, hole.upperBound + 1)
                index += 1
            }
            if isLeft { result.ranges.append(low...range.upperBound) }
        }
        return result
    }

    /// Removes the seqs of a range.
    public mutating func subtract(_ range: ClosedRange<Seq>) {
        self = subtracting(SeqRanges(CollectionOfOne(range)))
    }

    /// Returns the seqs that are in both sets.
    public func intersection(_ other: SeqRanges) -> SeqRanges {
        subtracting(subtracting(other))
    }

    // MARK: Places

    /// Returns the index of the first range that ends at or after this seq; the number of ranges if there is none.
    private func firstIndex(endingAtOrAfter seq: Seq) -> Int {
        ranges.partitioningIndex { $0.upperBound < seq }
    }

    /// True if the ranges overlap, or are adjacent without a seq between them.
    private func touches(_ a: ClosedRange<Seq>, _ b: ClosedRange<Seq>) -> Bool {
        (a.upperBound == .max || b.lowerBound <= a.upperBound + 1)
            && (b.upperBound == .max || a.lowerBound <= b.upperBound + 1)
    }
}

extension SeqRanges: CustomStringConvertible {
    /// The ranges as text: `[0…9, 15…15]`.
    public var description: String {
        "[" + ranges.map { "\($0.lowerBound)…\($0.upperBound)" }.joined(separator: ", ") + "]"
    }
}
