internal import ReelCore

/// The open streams of a client, in the order in which they were opened. Work for all streams is done in this order. So
/// the oldest streams get the subscriptions that a node allows, and the same ones get them after each reconnect.
struct OpenStreams {
    private var places: [StreamName: Int] = [:]
    /// The open streams, the oldest first.
    private(set) var values: [StreamState] = []

    /// The stream of this name; nil if it is not open.
    subscript(name: StreamName) -> StreamState? { places[name].map { values[$0] } }

    /// Appends a stream. Its name must not be among the open ones.
    mutating func append(_ stream: StreamState) {
        places[stream.name] = values.count
        values.append(stream)
    }
}
