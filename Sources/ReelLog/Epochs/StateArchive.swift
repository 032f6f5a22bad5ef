public import ReelCore

/// The folded state of a log, from elsewhere than the log: what the next epoch begins with where the log was lost.
public protocol StateArchive: Sendable {
    /// The log that was folded.
    var epoch: Epoch { get }
    /// How many partitions it has.
    var partitions: Int { get }
    /// How many logs were the current one before it; nil: not known.
    var number: Int? { get }
    /// The deployment of the log; nil: not known, since an older build folded it.
    var deployment: Deployment? { get }
    /// The highest state of a partition that can be had whole, each stream's digest checked; nil: there is none. Throws
    /// where there is one, and none that can be read.
    func state(of partition: Int) throws -> ArchivedState?
}

/// The state of a partition as of a seq.
public struct ArchivedState: Sendable {
    /// The streams, and the next seq to read.
    public var fold: PartitionFold
    /// The last record that was folded, by which the log is known again; nil: not known.
    public var last: Witness?
    /// What could not be read of the places where it might be, and why: one sentence each, for people.
    public var unread: [String]

    /// A state, and what was passed over for it.
    public init(fold: PartitionFold, last: Witness?, unread: [String] = []) {
        self.fold = fold
        self.last = last
        self.unread = unread
    }
}
