import ReelCore
import ReelLog
import ReelNode

extension PartitionSupervisor {
    /// The status of the partition, for other threads.
    struct Status: Sendable {
        /// The last seq that the file holds in all streams; −1: none.
        var seq = Seq.none
        /// The last seq that was read. The file holds it in all streams except those that wait.
        var readSeq = Seq.none
        /// The streams that wait, each with the first seq that its rows lack.
        var waiting: [StreamName: Seq] = [:]
        /// The number of records that wait.
        var waitingCount = 0
        /// The reason why the partition is not folded; nil: it is folded.
        var problem: SnapshotError?
        /// The phase of the partition.
        var phase = PartitionRules.Phase.seeds
        /// True if the file was compared with the log: its last record is the log's.
        var isVerified = false
        /// The last record that was folded into the file when it was opened; nil: none.
        var last: Witness?
        /// The last seq of the log when the file was compared with it. A fold up to a lower seq is incomplete.
        var goal = Seq.none
        /// The streams that have many sites.
        var crowd = SiteCrowd()

        /// The state of the log for this partition. Problems of this node alone do not count.
        var log: LogState {
            switch problem?.code {
            case .diverged: .diverged
            case .aheadOfLog: .aheadOfLog
            case .epochChanged: .ended
            case .truncated: .truncated
            case .logUnavailable, .forbidden, .damaged: .unavailable
            default: if case .ended = phase { .ended } else { .ok }
            }
        }

        /// Returns the last seq that the file holds in a stream.
        func seq(of stream: StreamName) -> Seq { waiting[stream].map { $0 - 1 } ?? max(seq, readSeq) }

        /// Returns the lowest seq as of which an answer to this request may be. If the client names none, it is the
        /// last seq that the log had when the file was compared.
        func seqNeeded(by request: StateRequest) -> Seq {
            request.seqMin == .none ? goal : request.seqMin
        }

        /// The reason why the partition can no longer be folded without an operator; nil: it is folded, or will be.
        var lastingStop: PartitionHealth.Stop? {
            guard let problem else { return nil }
            let stop = PartitionHealth.Stop(problem.code, problem.message)
            return stop.isLasting ? stop : nil
        }

        /// The reason why nothing is answered from the file; nil: requests are answered. A log that is merely
        /// unavailable refuses no reader.
        var refusal: SnapshotError? {
            if let problem, let refusal = Self.refusal(by: problem) { return refusal }
            return isVerified
                ? nil : SnapshotError(.nodeBehind, "this node has not compared its file with the log yet")
        }

        /// Takes over the position that the projector has committed.
        mutating func note(_ folder: PartitionProjector) {
            (seq, readSeq) = (folder.floor - 1, folder.next - 1)
            (waiting, waitingCount) = (folder.waitingSeqs, folder.waitingCount)
            // The waiting records precede the end of the epoch.
            phase = waiting.isEmpty ? folder.phase : .open
            crowd = folder.crowd
        }

        /// Returns the refusal of readers that a problem of the log causes; nil: none.
        static func refusal(by problem: SnapshotError) -> SnapshotError? {
            switch problem.code {
            case .diverged, .aheadOfLog, .epochChanged: problem
            // The state of the file is complete, but the next records are missing.
            case .truncated: SnapshotError(.nodeBehind, problem.message, told: problem.publicMessage)
            default: nil
            }
        }
    }
}
