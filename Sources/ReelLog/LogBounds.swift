public import ReelCore

/// The ends of a partition; both are −1 where it is empty.
public struct LogBounds: Equatable, Sendable {
    /// The first seq that can be read.
    public var first: Seq
    /// The last seq that can be read.
    public var last: Seq

    /// The ends of a partition.
    public init(first: Seq, last: Seq) {
        self.first = first
        self.last = last
    }

    /// Nothing to read.
    public static let empty = LogBounds(first: .none, last: .none)
}
