/// The settings of a snapshot node that an operator may change, in addition to `NodeSettings`. Sizes are in bytes.
public struct SnapshotSettings: Sendable {
    /// The folder of the partitions' files. Only one process may use it.
    public var folder: String
    /// The maximum number of records that are folded and written in one transaction.
    public var batchEvents = 4_096
    /// The time that folding one stream may take in a transaction; one event may exceed it. The stream's other events
    /// wait. Writes of a stream's rows take turns, too, if they take more than a twentieth of this time.
    public var turn = Duration.milliseconds(5)
    /// The maximum number of records that wait between the log and the fold.
    public var queuedEvents = 16_384
    /// The maximum size of these records in bytes; one batch of the log may exceed it.
    public var queuedBytes = 16 << 20
    /// The maximum memory of the streams, objects, tombstones and sites that the node keeps, for all partitions
    /// together. It is an estimate that includes the histories of texts. One transaction of each partition may exceed
    /// it.
    public var cachedBytes = 256 << 20
    /// The number of a partition's last seqs of which the index keeps the events for ranges.
    public var keptEvents: Int64 = 1_000_000
    /// The size of the WAL at which it is copied into the file, in bytes.
    public var checkpointBytes = 32 << 20
    /// The maximum number of responses that are made at once; further requests are refused with `overloaded`.
    public var openResponses = 64
    /// The maximum number of requests that wait at once for a seq that is not folded yet.
    public var foldWaiters = 16_384
    /// The maximum number of spooled responses that are read at once. A spooled response is too large for memory, and
    /// the clients that ask for the same one share it.
    public var openSpools = 256
    /// The time within which a client must read a spooled response, in milliseconds. A client must therefore read a
    /// larger response faster.
    public var spoolMs: Int64 = 600_000

    /// The maximum time that a request waits until the seq that it needs is folded, in milliseconds.
    public var reachMs: Int64 = 5_000

    /// The defaults, for a folder.
    public init(folder: String) {
        self.folder = folder
    }
}
