package import ReelCore

/// Repeated reads of one stream, each with exactly the changes since the read before. Safe on any thread. It does not
/// hold the client, and ends when it is released.
///
/// A batch of `SyncStream.changes()` says what has changed, but a read that follows it may already show later changes.
/// Here a moment and its changes are taken together, so that several reads never mix two moments.
package final class StreamObservation: Sendable {
    private let stream: StreamContent
    private let observer = ContentObserver()

    /// Begins the observation. The first read gets a reset.
    ///
    /// - Throws: `closed` if the stream or the client is closed.
    package init(_ stream: StreamContent) throws(ReelError) {
        self.stream = stream
        try stream.content.add(observer, to: stream.opening)
    }

    /// The number of changes of the content so far. It may grow without a change of an object.
    package var version: Int { observer.version }

    /// Waits until `version` is greater than a value. Returns also if the task is cancelled, or the stream is closed.
    package func wait(after version: Int) async { await observer.wait(after: version) }

    /// Calls `body` with the present moment, and with the changes since the last call. Calls must not overlap.
    ///
    /// - Parameters:
    ///   - always: true if `body` is called also if nothing has changed.
    ///   - body: reads objects. After an error the next call gets a reset.
    /// - Throws: The error of `body`. `closed` if the stream or the client is closed. A code that begins with `store_`
    ///   if the store failed.
    package func read(always: Bool, _ body: (StreamSnapshot, ContentChanges) throws -> Void) throws {
        let news = try stream.content.news(for: observer, of: stream.opening, always: always, stream.report)
        guard let (snapshot, changes) = news else { return }
        do {
            try body(snapshot, changes)
        } catch {
            observer.add(ContentChanges(isReset: true))
            throw error
        }
    }
}
