public import ReelCore

/// The first and the last seq of a partition. Both are −1 if nothing was ever written. If every record was trimmed,
/// `first` is `last` + 1.
public struct LogBounds: Equatable, Sendable {
    /// The first seq that can be read.
    public var first: Seq
    /// The last seq that can be read.
    public var last: Seq

    /// Creates the bounds of a partition.
    public init(first: Seq, last: Seq) {
        self.first = first
        self.last = last
    }

    /// The bounds of a partition to which nothing was ever written.
    public static let empty = LogBounds(first: .none, last: .none)
}
