public import ReelCore

/// The logs of one deployment, one per epoch, and the choice of the current one.
///
/// Every call blocks. Do not make any on an event loop.
public protocol LogStore: AnyObject, Sendable {
    /// Returns the current log; nil: there is none yet.
    func current() throws(LogError) -> CurrentLog?

    /// Creates the empty log of a new epoch. It is not the current log yet. Does nothing if that log already exists
    /// with the same number of partitions.
    ///
    /// - Throws: `bad_request` if it exists with another number of partitions.
    func create(_ epoch: Epoch, partitions: Int) throws(LogError)

    /// Opens a log of this store, the current one or another.
    func open(_ epoch: Epoch) throws(LogError) -> any EventLog

    /// Makes a log the current one, and stores its deployment.
    ///
    /// Its number must be the previous log's number + 1. If there is no current log, any number is accepted, because
    /// the log may continue those of a lost store.
    ///
    /// - Throws: `conflict` if the number does not fit, because another caller has advanced the store first.
    func advance(to next: CurrentLog) throws(LogError)

    /// Returns what is not as it must be, such as a topic setting by which acknowledged events can be lost. Each
    /// sentence says what was found, what is expected, and which command repairs it. Empty: all is right.
    func complaints() throws(LogError) -> [String]

    /// Closes connections and files. Logs that were opened stay open.
    func close()
}

extension LogStore {
    /// Returns nothing: most stores have no settings that something else could change.
    public func complaints() throws(LogError) -> [String] { [] }
}

/// A description of the current log.
public struct CurrentLog: Equatable, Sendable {
    /// The epoch of the log.
    public var epoch: Epoch
    /// The number of partitions.
    public var partitions: Int
    /// How many logs were the current one before it.
    public var number: Int
    /// The deployment, which all logs of a store share.
    public var deployment: Deployment

    /// Creates the description of a log.
    ///
    /// - Parameters:
    ///   - epoch: The epoch of the log.
    ///   - partitions: The number of partitions.
    ///   - number: How many logs were the current one before it.
    ///   - deployment: The deployment; nil: the log begins a new one.
    public init(epoch: Epoch, partitions: Int, number: Int, deployment: Deployment? = nil) {
        self.epoch = epoch
        self.partitions = partitions
        self.number = number
        self.deployment = deployment ?? Deployment(beginningWith: epoch)
    }
}
