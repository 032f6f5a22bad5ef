/// The rule by which a connection decides when to checkpoint: to copy the WAL back into the file. Only one connection
/// of a file does that.
public struct CheckpointPlan {
    private let frames: Int
    private var due: Int

    /// Creates a plan that checkpoints each time the WAL has grown to `frames` frames.
    public init(frames: Int) {
        self.frames = max(1, frames)
        due = self.frames
    }

    /// Returns the checkpoint to make after a commit; nil if none is needed yet. `walFrames` is the number of frames in
    /// the WAL.
    public mutating func next(walFrames: Int) -> Connection.Checkpoint? {
        if walFrames < frames { due = frames }
        guard walFrames >= due else { return nil }
        // Readers may prevent the restart of the WAL. Then the plan tries again some frames later, not at once.
        due = walFrames + max(1, frames / 4)
        return walFrames >= 4 * frames ? .restart : .passive
    }
}
