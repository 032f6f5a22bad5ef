public import ReelCore

/// The ends of a partition. Both are −1 where nothing was ever written; `first` is `last` + 1 where it was trimmed up
/// to its end.
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

    /// Nothing was ever written.
    public static let empty = LogBounds(first: .none, last: .none)
}
