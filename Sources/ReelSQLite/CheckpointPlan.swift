/// When to copy the WAL back into the file, for the one connection that does it.
public struct CheckpointPlan {
    private let frames: Int
    private var due: Int

    /// A copy whenever the WAL has grown to so many frames.
    public init(frames: Int) {
        self.frames = max(1, frames)
        due = self.frames
    }

    /// To be asked after each commit, with the frames of the WAL; nil: nothing to do yet.
    public mutating func next(walFrames: Int) -> Connection.Checkpoint? {
        if walFrames < frames { due = frames }
        guard walFrames >= due else { return nil }
        // Readers may hold back the WAL's new beginning; then it is tried again some frames later, not at once.
        due = walFrames + max(1, frames / 4)
        return walFrames >= 4 * frames ? .restart : .passive
    }
}
