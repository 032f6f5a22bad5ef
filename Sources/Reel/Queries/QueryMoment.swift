internal import ReelCore

/// The properties of a moment that the rows of a query have in common with all objects of their model.
struct QueryMoment: Sendable {
    /// The objects that the model cannot read, sorted by the bytes of their ids.
    let problems: [ModelProblem]
    /// True if the whole stream has arrived on this device.
    let isComplete: Bool
    /// The seq up to which the stream was folded.
    let seq: Seq
    /// True if any object that the model can read has an own event that is not confirmed yet.
    let hasPending: Bool
}
