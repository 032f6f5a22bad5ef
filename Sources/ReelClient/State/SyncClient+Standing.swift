internal import ReelCore

/// An open stream at one moment, for a caller that drives the client in virtual time.
package struct StreamStanding: Sendable {
    package let stream: String
    package let status: StreamStatus
}

// The view of a caller that drives the client in virtual time: it must not advance the time before the client is ready.
extension SyncClient {
    /// The number of the call of `renewToken` that has not returned yet; nil: there is none.
    package var tokenQuestionNumber: Int? { tokenQuestion?.number }

    /// The next deadline of a call that waits, of `flush` or `syncOnce`, by the clock of the transport in milliseconds;
    /// nil: no such call waits.
    package var deadlineMs: Int64? { resources.deadlinesMs.values.min() }

    /// The open streams, sorted by name, after everything that was enqueued was taken.
    package func standings() -> [StreamStanding] {
        takeEnqueued()
        if opened.values.contains(where: \.isDirty) { finishTurn() }
        return opened.values.map {
            StreamStanding(stream: $0.name.description, status: resources.board.stream($0.opening))
        }.sorted { $0.stream < $1.stream }
    }

    /// Returns the digest of the state of an open stream; nil if it has none.
    package func digest(ofStream name: String) -> UInt64? {
        StreamName(name).flatMap { opened[$0]?.view?.digest() }
    }

    /// Ends the client as the end of its process does: nothing more is stored or sent. Calls that wait throw `closed`.
    package func abandon() { if !isClosed { end(.closed) } }
}
