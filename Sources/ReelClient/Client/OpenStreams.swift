internal import ReelCore

/// The open streams of a client, in the order in which they were opened. What is done for all of them is done in this
/// order: the oldest ones get the places that a node has, the same ones after each reconnect.
struct OpenStreams {
    private var places: [StreamName: Int] = [:]
    /// The oldest one first.
    private(set) var values: [StreamState] = []

    /// The stream of this name, where it is open.
    subscript(name: StreamName) -> StreamState? { places[name].map { values[$0] } }

    /// Puts a stream behind the others. Its name must not be among theirs.
    mutating func append(_ stream: StreamState) {
        places[stream.name] = values.count
        values.append(stream)
    }
}
