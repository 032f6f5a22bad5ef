public import ReelCore

/// What became of an `EpochChange`.
public struct EpochReport: Sendable {
    /// What is not in the new log of what the old one had.
    public struct Loss: Sendable {
        /// The partition of the old log.
        public var partition: Int
        /// The state is that of this seq; −1: there is none.
        public var seq: Seq
        /// The last seq behind that which the partition is known to have had; nil: none is known.
        public var end: Seq?
        /// What happened, a sentence without a full stop.
        public var reason: String
    }

    /// Seqs of the old log that cannot be read and were passed.
    public struct Damage: Sendable {
        /// The seqs, and what was found there.
        public var range: DamagedRange
        /// They stand inside the state that the epoch begins with: the rest of that state counts for nothing.
        public var isInSeeds: Bool
        /// With the last range of a partition: the events behind its first one that were refused as a gap. An event of
        /// their site before them may be lost. 0 with each other range.
        public var gaps = 0
    }

    /// The log whose epoch has ended.
    public var old: CurrentLog
    /// The log that is the current one now.
    public var new: CurrentLog
    /// The state had been written and read back by an earlier run: of it the losses alone are said here.
    public var wasWritten = false
    /// False where that run may have been made of snapshots, and this one was not: then only that one knows.
    public var lossesAreKnown = true
    /// False where the old log is gone with its store and the snapshots name no deployment: the epoch of the old log
    /// stands for it.
    public var deploymentIsKnown = true
    /// The number of streams that have a state.
    public var streams = 0
    /// Sites, living objects and tombstones, and the bytes of their seeds.
    public var sites = 0, objects = 0, tombstones = 0, bytes = 0
    /// The events that were folded.
    public var events = 0
    /// For each partition of the old log, by number, where it was cut off.
    public var losses: [Loss] = []
    /// What was passed because it cannot be read, by partition and seq.
    public var damage: [Damage] = []

    mutating func add(_ sum: SeedSum) {
        streams += 1
        sites += sum.sites
        objects += sum.objects
        tombstones += sum.tombstones
        bytes += sum.bytes
    }
}

/// How far an `EpochChange` is.
public struct EpochProgress: Sendable {
    /// What is done at the moment.
    public enum Step: String, Sendable {
        /// Looking for barriers in the old log.
        case looking
        /// Writing and reading back the `end` of a partition.
        case ending
        /// Folding the old log, and writing the new one's seeds.
        case folding
        /// Reading the new log back.
        case verifying
        /// Writing `open` behind the seeds.
        case opening
    }

    /// What is done.
    public var step: Step
    /// The partition, of the old or the new log.
    public var partition: Int
    /// The seq that was reached there, and the last one; −1: nothing to read.
    public var seq: Seq, last: Seq
}
