/// A set of seqs as sorted, disjoint, closed ranges that do not touch: what a party holds, proven frame by frame.
/// Adding at the end, the usual case, costs nothing but a comparison.
public struct SeqRanges: Hashable, Sendable {
    /// The ranges, ascending, with at least one seq between two.
    public private(set) var ranges: [ClosedRange<Seq>]

    /// No seq.
    public init() {
        ranges = []
    }

    /// The seqs of these ranges, in any order; they may overlap.
    public init(_ ranges: some Sequence<ClosedRange<Seq>>) {
        self.init()
        for range in ranges { insert(range) }
    }

    /// Whether there is no seq.
    public var isEmpty: Bool { ranges.isEmpty }

    /// How many seqs; `Int64.max` where they are more than that.
    public var count: Int64 {
        ranges.reduce(0) { count, range in
            let (width, tooWide) = range.upperBound.subtractingReportingOverflow(range.lowerBound)
            let (sum, tooMany) = count.addingReportingOverflow(width)
            return tooWide || tooMany || sum == .max ? .max : sum + 1
        }
    }

    /// The least seq.
    public var first: Seq? { ranges.first?.lowerBound }

    /// The greatest seq.
    public var last: Seq? { ranges.last?.upperBound }

    /// Whether the seq is in the set.
    public func contains(_ seq: Seq) -> Bool {
        let index = firstIndex(endingAtOrAfter: seq)
        return index < ranges.count && ranges[index].lowerBound <= seq
    }

    /// Whether all seqs of the range are in the set.
    public func contains(_ range: ClosedRange<Seq>) -> Bool {
        let index = firstIndex(endingAtOrAfter: range.upperBound)
        return index < ranges.count && ranges[index].lowerBound <= range.lowerBound
    }

    /// The last seq of the unbroken run that begins right after `after`; `after` itself if there is none.
    public func contiguous(after: Seq) -> Seq {
        guard after < .max else { return after }
        let index = firstIndex(endingAtOrAfter: after + 1)
        return index < ranges.count && ranges[index].lowerBound <= after + 1 ? ranges[index].upperBound : after
    }

    /// What is missing of a range: the holes that a party must fetch.
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
        // Everything from the first range that reaches up to this one to the last that begins within its reach.
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

    /// The seqs that this set has and the other has not.
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

    /// Takes the seqs of a range out.
    public mutating func subtract(_ range: ClosedRange<Seq>) {
        self = subtracting(SeqRanges(CollectionOfOne(range)))
    }

    /// The seqs that both sets have.
    public func intersection(_ other: SeqRanges) -> SeqRanges {
        subtracting(subtracting(other))
    }

    // MARK: Places

    /// Where the first range stands that ends at this seq or later; the number of ranges if there is none.
    private func firstIndex(endingAtOrAfter seq: Seq) -> Int {
        var (low, high) = (0, ranges.count)
        while low < high {
            let middle = low + (high - low) / 2
            if ranges[middle].upperBound < seq {
                low = middle + 1
            } else {
                high = middle
            }
        }
        return low
    }

    /// Whether two ranges overlap or follow each other without a seq between.
    private func touches(_ a: ClosedRange<Seq>, _ b: ClosedRange<Seq>) -> Bool {
        (a.upperBound == .max || b.lowerBound <= a.upperBound + 1)
            && (b.upperBound == .max || a.lowerBound <= b.upperBound + 1)
    }
}

extension SeqRanges: CustomStringConvertible {
    /// The ranges as people write them: `[0…9, 15…15]`.
    public var description: String {
        "[" + ranges.map { "\($0.lowerBound)…\($0.upperBound)" }.joined(separator: ", ") + "]"
    }
}
