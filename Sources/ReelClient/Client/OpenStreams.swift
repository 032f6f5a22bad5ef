internal import ReelCore

/// The open streams of a client, in the order in which they were opened. Work for all streams is done in this order. So
/// the oldest streams get the subscriptions that a node allows, and the same ones get them after each reconnect.
struct OpenStreams {
    private var places: [StreamName: Int] = [:]
    /// The open streams, the oldest first.
    private(set) var values: [StreamState] = []

    /// The stream of this name; nil if it is not open.
    subscript(name: StreamName) -> StreamState? { places[name].map { values[$0] } }

    /// The stream of this opening; nil if it was closed, also if the stream was opened again since.
    subscript(opening: StreamOpening) -> StreamState? {
        self[opening.name].flatMap { $0.opening == opening ? $0 : nil }
    }

    /// Appends a stream. Its name must not be among the open ones.
    mutating func append(_ stream: StreamState) {
        places[stream.name] = values.count
        values.append(stream)
    }

    /// Removes a stream that is open.
    mutating func remove(_ stream: StreamState) {
        guard let place = places.removeValue(forKey: stream.name) else { return }
        values.remove(at: place)
        for index in place..<values.count { places[values[index].name] = index }
    }
}

/// One opening of a stream. The calls of a `SyncStream` belong to one: after `close`, they do not reach a stream of the
/// same name that was opened later.
struct StreamOpening: Sendable, Hashable {
    let name: StreamName
    /// The number of this opening among those of the client.
    let number: Int
}
