public import ReelCore

/// The result of an `EpochChange`.
public struct EpochReport: Sendable {
    /// Records of the old log that are not part of the new log.
    public struct Loss: Sendable {
        /// The partition of the old log.
        public var partition: Int
        /// The last seq of the state that the new log begins with; −1: there is none.
        public var seq: Seq
        /// The last seq after `seq` that the partition is known to have had; nil: unknown.
        public var end: Seq?
        /// The reason: what happened, a sentence without a full stop.
        public var reason: String
    }

    /// Seqs of the old log that cannot be read and were skipped.
    public struct Damage: Sendable {
        /// The seqs, and what was found there.
        public var range: DamagedRange
        /// True if the seqs are inside the state that the epoch begins with. The rest of that state is then void.
        public var isInSeeds: Bool
        /// How many events after the partition's first damaged range were refused because of a gap. An earlier event of
        /// their site may be lost. Only the last range of a partition has the number; the others have 0.
        public var gaps = 0
    }

    /// The log of the epoch that has ended.
    public var old: CurrentLog
    /// The log that is the current one now.
    public var new: CurrentLog
    /// True if an earlier run had already written and verified the state. The report then contains only the losses.
    public var wasWritten = false
    /// False if an earlier run may have used snapshots that this run was not given. The losses are then unknown.
    public var lossesAreKnown = true
    /// False if the old log and its store are gone, and the snapshots name no deployment. The epoch of the old log is
    /// then used as the deployment.
    public var deploymentIsKnown = true
    /// The number of streams that have a state.
    public var streams = 0
    /// The numbers of sites, living objects and tombstones, and the bytes of their seeds.
    public var sites = 0, objects = 0, tombstones = 0, bytes = 0
    /// The number of events that were folded.
    public var events = 0
    /// The losses of each partition of the old log, by partition number.
    public var losses: [Loss] = []
    /// The ranges that were skipped because they cannot be read, by partition and seq.
    public var damage: [Damage] = []

    mutating func add(_ sum: SeedSum) {
        streams += 1
        sites += sum.sites
        objects += sum.objects
        tombstones += sum.tombstones
        bytes += sum.bytes
    }
}

/// The progress of an `EpochChange`.
public struct EpochProgress: Sendable {
    /// A step of the change.
    public enum Step: String, Sendable {
        /// Searching the old log for barriers.
        case looking
        /// Writing the `end` of a partition, and reading it back.
        case ending
        /// Folding the old log, and writing the seeds of the new log.
        case folding
        /// Reading the new log back.
        case verifying
        /// Writing `open` after the seeds.
        case opening
    }

    /// The current step.
    public var step: Step
    /// The partition of the old or the new log.
    public var partition: Int
    /// The seq that was reached in the partition, and its last seq; −1: nothing to read.
    public var seq: Seq, last: Seq
}
