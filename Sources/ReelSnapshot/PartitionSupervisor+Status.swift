import ReelCore
import ReelLog
import ReelNode

extension PartitionSupervisor {
    /// How the partition stands, for those who ask.
    struct Status: Sendable {
        /// The last seq that the file holds of all streams; −1: none.
        var seq = Seq.none
        /// The last seq that was read. The file holds it of all streams but those that wait.
        var readSeq = Seq.none
        /// The streams that wait, and the first seq of each that its rows lack.
        var waiting: [StreamName: Seq] = [:]
        /// The records that wait.
        var waitingCount = 0
        /// Why it does not go on; nil: it does.
        var problem: SnapshotError?
        /// Where in its life the partition is.
        var phase = PartitionRules.Phase.seeds
        /// The file's last record is the log's.
        var isVerified = false
        /// The last record that the file was folded to when it was opened; nil: none.
        var last: Witness?
        /// The last seq of the log when the file was compared with it: a fold up to less is a part of the state.
        var goal = Seq.none
        /// The streams that have many sites.
        var crowd = SiteCrowd()

        /// How the log does for this partition. What only this node lacks is no affair of the log.
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

        /// The last seq that the file holds of a stream.
        func seq(of stream: StreamName) -> Seq { waiting[stream].map { $0 - 1 } ?? max(seq, readSeq) }

        /// The seq that an answer to this question must be true of. Without a bound that the client names, it is all
        /// that there was when the file was compared.
        func seqNeeded(by request: StateRequest) -> Seq {
            request.seqMin == .none ? goal : request.seqMin
        }

        /// Why the partition is not folded any more, however long one waits; nil: it is.
        var lastingStop: PartitionHealth.Stop? {
            guard let problem else { return nil }
            let stop = PartitionHealth.Stop(problem.code, problem.message)
            return stop.isLasting ? stop : nil
        }

        /// Why nothing is answered from the file. A log that is merely away stops no reader.
        var refusal: SnapshotError? {
            if let problem, let refusal = Self.refusal(by: problem) { return refusal }
            return isVerified
                ? nil : SnapshotError(.nodeBehind, "this node has not compared its file with the log yet")
        }

        /// Takes what the folder has committed.
        mutating func note(_ folder: PartitionProjector) {
            (seq, readSeq) = (folder.floor - 1, folder.next - 1)
            (waiting, waitingCount) = (folder.waitingSeqs, folder.waitingCount)
            // What waits lies before the end of the epoch.
            phase = waiting.isEmpty ? folder.phase : .open
            crowd = folder.crowd
        }

        /// What a problem of the log means to readers; nil: nothing.
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
