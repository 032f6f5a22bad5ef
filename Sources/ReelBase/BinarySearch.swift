extension RandomAccessCollection {
    /// Returns the first index whose element does not satisfy the condition, by binary search; `endIndex` if all do.
    /// The elements before that index must satisfy it, and no others.
    @inlinable
    public func partitioningIndex(where isBefore: (Element) throws -> Bool) rethrows -> Index {
        var (start, length) = (startIndex, count)
        while length > 0 {
            let half = length / 2
            let middle = index(start, offsetBy: half)
            if try isBefore(self[middle]) {
                start = index(after: middle)
                length -= half + 1
            } else {
                length = half
            }
        }
        return start
    }

    /// Returns the index of an element, or the index at which to insert it, by binary search.
    ///
    /// - Parameter order: returns a negative number for the elements before the one that is searched, 0 for it, and a
    ///   positive number for the elements after it.
    @inlinable
    public func sortedIndex(by order: (Element) throws -> Int) rethrows -> (index: Index, isFound: Bool) {
        var (start, length) = (startIndex, count)
        while length > 0 {
            let half = length / 2
            let middle = index(start, offsetBy: half)
            let found = try order(self[middle])
            if found == 0 { return (middle, true) }
            if found < 0 {
                start = index(after: middle)
                length -= half + 1
            } else {
                length = half
            }
        }
        return (start, false)
    }
}
