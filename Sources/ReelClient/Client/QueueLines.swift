internal import ReelCore

/// The own events that wait in the queues, one line of JSON each. Streams are sorted by name. The events of a stream
/// are in the order of publishing.
///
///     {"event":{"fields":{"title":"Milk"},"id":"1","model":"task","type":"insert"},"number":7,"stream":"todo"}
///
/// | member | |
/// | --- | --- |
/// | `stream` | the stream that the event was published to |
/// | `number` | the number of the event in the queue of the stream |
/// | `event` | the event in the form of `reel publish`, without a site and an op; `base` only if the meaning needs it |
/// | `epoch` | the epoch of the event's seqs, if it is known; only with a `base` |
/// | `site`, `op` | the names under which a node got the event, which the log may have; absent: never sent |
///
/// Events of streams that are not open are read from the file, in pages. An event that is published or settled while
/// the lines are read may be listed or not.
public struct QueueLines: AsyncSequence, Sendable {
    /// A line, without a line feed.
    public typealias Element = String

    /// An iterator over the lines.
    public struct AsyncIterator: AsyncIteratorProtocol {
        let client: SyncClient
        var streams: ArraySlice<String>?
        var number: Int64 = 0
        var lines: ArraySlice<String> = []

        /// Returns the next line; nil after the last one.
        ///
        /// - Throws: A `ReelError` if the store failed or the client is closed.
        public mutating func next() async throws -> String? {
            if streams == nil { streams = try await client.streams().filter { $0.pendingCount > 0 }.map(\.id)[...] }
            while lines.isEmpty, let stream = streams?.first {
                let page = try await client.queueLines(of: stream, after: number)
                lines = page.lines[...]
                if let last = page.last {
                    number = last
                } else {
                    streams?.removeFirst()
                    number = 0
                }
            }
            return lines.popFirst()
        }
    }

    let client: SyncClient

    /// Returns an iterator that begins with the first line.
    public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(client: client) }
}

extension SyncClient {
    /// Returns the own events that wait in all streams of the device, open or not, as lines of JSON. See `QueueLines`.
    nonisolated public func queueLines() -> QueueLines { QueueLines(client: self) }

    /// The size of a page: the maximum number of lines, and the approximate number of bytes of events that ends a page.
    private static let (linesPerPage, bytesPerPage) = (500, 1 << 20)

    /// Returns the lines of the events after `number`, and the number of the last event that was read. That number is
    /// nil if there are no more events.
    fileprivate func queueLines(of id: String, after number: Int64) throws -> (lines: [String], last: Int64?) {
        try checkOpen()
        guard let name = StreamName(id) else { return ([], nil) }
        let entries: [Outbox.Entry]
        let epoch: Epoch?
        if let stream = opened[name] {
            let outbox = stream.outbox
            entries = Array(outbox.entries[outbox.index(behind: number)...].prefix(Self.linesPerPage))
            epoch = stream.fold?.epoch ?? stream.queueEpoch
        } else {
            let stored = try store?.entries(
                of: name,
                after: number,
                limit: Self.linesPerPage,
                bytes: Self.bytesPerPage
            )
            entries = stored?.entries ?? []
            epoch = stored?.epoch
        }
        return (entries.filter { !$0.event.isFiller }.map { $0.line(of: name, epoch) }, entries.last?.number)
    }
}

extension Outbox.Entry {
    fileprivate func line(of stream: StreamName, _ epoch: Epoch?) -> String {
        var line = JSONObjectWriter()
        if event.dependsOnBase { line.member("epoch", epoch?.description) }
        line.member("event", raw: event.encoded(base: event.dependsOnBase ? base : nil))
        line.member("number", number)
        line.member("op", author?.op)
        line.member("site", author?.site.description)
        line.member("stream", stream.description)
        return String(decoding: line.finish(), as: UTF8.self)
    }
}
