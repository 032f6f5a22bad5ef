/// The figures in the row of a stream about the state and the last event, for lists of streams.
struct StreamFigures: Equatable, Sendable {
    /// The number of living objects.
    var objects: Int
    /// The size of the living objects in bytes: models, ids, and fields as canonical JSON.
    var bytes: Int
    /// The gateway's clock in the last event of the stream, in milliseconds since 1970; nil: not known.
    var atMs: Int64?
}
