public import ReelCore

/// The folded state of a log from another source than the log. The next epoch begins with it if the log was lost.
public protocol StateArchive: Sendable {
    /// The epoch of the log that was folded.
    var epoch: Epoch { get }
    /// The number of partitions of that log.
    var partitions: Int { get }
    /// How many logs were the current one before it; nil: unknown.
    var number: Int? { get }
    /// The deployment of the log; nil: unknown, because an older build folded it.
    var deployment: Deployment? { get }
    /// Returns the latest complete state of a partition, after checking each stream's digest; nil: there is none.
    /// Throws if there are states and none of them can be read.
    func state(of partition: Int) throws -> ArchivedState?
}

/// The state of a partition as of a seq.
public struct ArchivedState: Sendable {
    /// The streams, and the next seq to read.
    public var fold: PartitionFold
    /// The last record that was folded; the log is recognised by it. Nil: unknown.
    public var last: Witness?
    /// The places that may hold a state and could not be read, each with the reason: one sentence each, for people.
    public var unread: [String]

    /// Creates a state, with the places that could not be read.
    public init(fold: PartitionFold, last: Witness?, unread: [String] = []) {
        self.fold = fold
        self.last = last
        self.unread = unread
    }
}
