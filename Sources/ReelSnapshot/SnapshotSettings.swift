/// What an operator may set for a snapshot node, beside what every node has. Sizes in bytes.
public struct SnapshotSettings: Sendable {
    /// The folder of the partitions' files; one process has it.
    public var folder: String
    /// Events that are folded and written in one transaction at most.
    public var batchEvents = 4_096
    /// The time that folding one stream may take of a transaction, or one event. The stream's other events wait. A
    /// stream whose rows take more than a twentieth of it to be written is written in turns, too.
    public var turn = Duration.milliseconds(5)
    /// Events that wait between the log and the fold at most.
    public var queuedEvents = 16_384
    /// Their bytes, about: one batch of the log more may wait.
    public var queuedBytes = 16 << 20
    /// Streams, objects, tombstones and sites that are kept folded in memory at most, of each partition; but the stream
    /// written to last is kept whole.
    public var cachedObjects = 1_000_000
    /// The bytes of the objects of those streams, by the same rule.
    public var cachedBytes = 256 << 20
    /// Seqs of a partition whose events are kept for ranges.
    public var keptEvents: Int64 = 1_000_000
    /// The WAL of a file is copied into it when it has grown to this.
    public var checkpointBytes = 32 << 20
    /// Answers that are made at once at most; further questions are refused with `overloaded`.
    public var openResponses = 64
    /// Questions that wait at once for a seq that is not folded yet at most.
    public var foldWaiters = 16_384
    /// Answers too large for memory that are read at once at most, each by all who share it.
    public var openSpools = 256
    /// An answer too large for memory is read within so long, in milliseconds. So a client has to read the faster, the
    /// larger its answer is.
    public var spoolMs: Int64 = 600_000

    /// So long, in milliseconds, an answer waits for the seq that it is to be true of.
    public var reachMs: Int64 = 5_000

    /// The defaults, for a folder.
    public init(folder: String) {
        self.folder = folder
    }
}
