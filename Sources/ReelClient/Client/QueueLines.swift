internal import ReelCore

/// The own events that wait, one line of JSON each, streams by name and events in the order of publishing.
///
///     {"event":{"fields":{"title":"Milk"},"id":"1","model":"task","type":"insert"},"number":7,"stream":"todo"}
///
/// | member | |
/// | --- | --- |
/// | `stream` | the stream that the event was published to |
/// | `number` | its place in the queue of the stream |
/// | `event` | the event as `reel publish` takes it, without a site and an op; `base` only if the meaning needs it |
/// | `epoch` | the epoch that the event's seqs belong to, if it is known; only beside a `base` |
/// | `site`, `op` | under these a node got the event, so that the log may have it; absent: it was never sent |
///
/// Events of streams that were not opened are read from the file, some at a time. What is published or settled while
/// the lines are read may be among them or not.
public struct QueueLines: AsyncSequence, Sendable {
    /// A line, without a line feed.
    public typealias Element = String

    /// The lines, one after the other.
    public struct AsyncIterator: AsyncIteratorProtocol {
        let client: SyncClient
        var streams: ArraySlice<String>?
        var number: Int64 = 0
        var lines: ArraySlice<String> = []

        /// The next line; nil after the last. Throws a `ReelError` if the store failed or the client is closed.
        public mutating func next() async throws -> String? {
            if streams == nil { streams = try await client.streams().filter { $0.queued > 0 }.map(\.id)[...] }
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

    /// From the first line on.
    public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(client: client) }
}

extension SyncClient {
    /// The own events that wait in all streams of the device, opened or not, as lines of JSON; see `QueueLines`.
    nonisolated public var queueLines: QueueLines { QueueLines(client: self) }

    /// How many lines are made at once, and from about how many bytes of events.
    private static let (linesPerPage, bytesPerPage) = (500, 1 << 20)

    /// The lines of the events behind this number, and the last number that was looked at; nil: there are no more.
    fileprivate func queueLines(of id: String, after number: Int64) throws -> (lines: [String], last: Int64?) {
        try checkOpen()
        guard let name = StreamName(id) else { return ([], nil) }
        let entries: ArraySlice<Outbox.Entry>
        let epoch: Epoch?
        if let stream = opened[name] {
            let outbox = stream.outbox
            entries = outbox.entries[outbox.index(behind: number)...].prefix(Self.linesPerPage)
            epoch = stream.fold?.epoch ?? stream.queueEpoch
        } else {
            let stored = try store?.entries(
                of: name,
                after: number,
                limit: Self.linesPerPage,
                bytes: Self.bytesPerPage
            )
            entries = stored?.entries[...] ?? []
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
