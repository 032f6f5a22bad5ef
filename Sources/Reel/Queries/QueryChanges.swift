import ReelBase

/// The changes that turn the former rows of a query into the present ones, by offset.
///
/// Take the removed and moved rows out of the former rows, and then put the moved and inserted rows in, in ascending
/// order of their new offsets. Batch updates of lists in user interfaces take the offsets as they are.
public struct QueryChanges: Sendable, Hashable {
    /// A row that has another place among the rows that stay.
    public struct Move: Sendable, Hashable {
        /// The offset in the former rows.
        public let from: Int
        /// The offset in the present rows.
        public let to: Int
    }

    /// The offsets of the removed rows in the former rows, ascending.
    public internal(set) var removals: [Int] = []
    /// The offsets of the inserted rows in the present rows, ascending.
    public internal(set) var insertions: [Int] = []
    /// The moved rows, as few as possible, ascending by their offsets in the present rows.
    public internal(set) var moves: [Move] = []
    /// The offsets in the present rows of those that were there before with another value, ascending. A row can be
    /// moved and updated.
    public internal(set) var updates: [Int] = []

    /// True if the rows are the same.
    public var isEmpty: Bool { removals.isEmpty && insertions.isEmpty && moves.isEmpty && updates.isEmpty }
}

extension QueryChanges {
    /// Returns the changes between two lists of rows. The time follows the number of rows between the first and the
    /// last one that differ.
    init(from old: [LoadedObject], to new: [LoadedObject]) {
        let start = zip(old, new).prefix { $0 === $1 }.count
        let rest = min(old.count, new.count) - start
        let end = zip(old.reversed(), new.reversed()).prefix(rest).prefix { $0 === $1 }.count
        var places: [ObjectKey: Int] = [:]
        for offset in start..<(old.count - end) { places[old[offset].key] = offset }
        var kept: [Move] = []
        for offset in start..<(new.count - end) {
            guard let former = places.removeValue(forKey: new[offset].key) else {
                insertions.append(offset)
                continue
            }
            kept.append(Move(from: former, to: offset))
            if old[former] !== new[offset] { updates.append(offset) }
        }
        removals = places.values.sorted()
        let staying = Self.increasing(kept.map(\.from))
        moves = kept.filter { !staying.contains($0.from) }
    }

    /// Returns the longest increasing part of a list of different numbers.
    ///
    /// The algorithm is patience sorting (Fredman 1975).
    private static func increasing(_ numbers: [Int]) -> Set<Int> {
        /// The index of the last number of the best part of each length.
        var ends: [Int] = []
        var before = [Int?](repeating: nil, count: numbers.count)
        for index in numbers.indices {
            let length = ends.partitioningIndex { numbers[$0] < numbers[index] }
            before[index] = length > 0 ? ends[length - 1] : nil
            if length < ends.count { ends[length] = index } else { ends.append(index) }
        }
        var part: Set<Int> = []
        var next = ends.last
        while let index = next {
            part.insert(numbers[index])
            next = before[index]
        }
        return part
    }
}
