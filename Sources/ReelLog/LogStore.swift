public import ReelCore

/// Where the logs of one deployment lie, one epoch after the other, and which of them is the current one.
///
/// Every call blocks; none may be made on an event loop.
public protocol LogStore: AnyObject, Sendable {
    /// The current log; nil: none was made yet.
    func current() throws(LogError) -> CurrentLog?

    /// Makes the log of a new epoch, empty; it is not the current one yet. Nothing happens where it is there already
    /// with so many partitions; with another number, `bad_request`.
    func create(_ epoch: Epoch, partitions: Int) throws(LogError)

    /// Opens a log of this store, the current one or another.
    func open(_ epoch: Epoch) throws(LogError) -> any EventLog

    /// Makes a log the current one, and keeps its deployment. Its number is the former's + 1; `conflict` where it is
    /// not, because another caller was faster. Where there is no current log it may have any number: it may go on for a
    /// store that was lost.
    func advance(to next: CurrentLog) throws(LogError)

    /// What is not as it must be, such as a setting of a topic by which acknowledged events can be lost: what was
    /// found, what is expected, and the command that repairs it. Empty: all is right.
    func complaints() throws(LogError) -> [String]

    /// Closes connections and files. Logs that were opened stay open.
    func close()
}

extension LogStore {
    /// A store whose form cannot be changed from outside has none.
    public func complaints() throws(LogError) -> [String] { [] }
}

/// Which log is the current one.
public struct CurrentLog: Equatable, Sendable {
    /// Its identity.
    public var epoch: Epoch
    /// How many partitions it has.
    public var partitions: Int
    /// How many logs were current before it.
    public var number: Int
    /// The deployment, which all logs of a store share.
    public var deployment: Deployment

    /// The log of this epoch, as the one of this number; without `deployment` it begins a deployment.
    public init(epoch: Epoch, partitions: Int, number: Int, deployment: Deployment? = nil) {
        self.epoch = epoch
        self.partitions = partitions
        self.number = number
        self.deployment = deployment ?? Deployment(beginningWith: epoch)
    }
}
