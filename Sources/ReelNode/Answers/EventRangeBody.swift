public import ReelCore

/// The body of `GET …/events`: `{"stream","epoch","partition","from","head","events","to"}`. The member `to` is the
/// last one, so a response can be sent in pieces, and its end states the last seq that it proves.
public struct EventRangeBody: Sendable {
    /// The first seq of the range.
    public var from: Seq
    /// The last seq that the response proves; `from − 1` proves nothing.
    public var to: Seq
    /// The last seq of the partition that can be read.
    public var head: Seq
    /// The number of events added.
    public private(set) var count = 0
    /// The size of the events added, in bytes.
    public private(set) var byteCount = 0
    /// The events that are not taken yet, separated by commas.
    public private(set) var body: [UInt8] = []

    /// A body that proves nothing yet, or proves the range up to `to` without events.
    public init(from: Seq, to: Seq? = nil, head: Seq) {
        self.from = from
        self.to = to ?? from - 1
        self.head = head
    }

    /// Adds a chunk that continues the range.
    public mutating func append(_ chunk: EventRange) {
        to = chunk.to
        guard chunk.count > 0 else { return }
        if count > 0 { body.append(UInt8(ascii: ",")) }
        body += chunk.body
        count += chunk.count
        byteCount += chunk.body.count
    }

    /// Removes and returns the events that were added since the last call, with the comma before them.
    public mutating func takeBody() -> [UInt8] {
        let taken = body
        body = []
        return taken
    }

    /// Returns the bytes before the events.
    ///
    /// - Parameters:
    ///   - stream: The stream of the events.
    ///   - epoch: The epoch of the log.
    ///   - partition: The number of the partition that contains the stream.
    public func opening(_ stream: StreamName, _ epoch: Epoch, _ partition: Int) -> [UInt8] {
        var writer = JSONObjectWriter()
        writer.member("stream", stream.description)
        writer.member("epoch", epoch.description)
        writer.member("partition", partition)
        writer.member("from", from)
        writer.member("head", head)
        writer.member("events") { $0.append(UInt8(ascii: "[")) }
        return Array(writer.finish().dropLast())
    }

    /// The bytes after the events.
    public var closing: [UInt8] {
        var closing = Array(#"],"to":"#.utf8)
        closing.append(integer: to)
        closing.append(UInt8(ascii: "}"))
        return closing
    }

    /// Returns the whole body.
    ///
    /// - Parameters:
    ///   - stream: The stream of the events.
    ///   - epoch: The epoch of the log.
    ///   - partition: The number of the partition that contains the stream.
    public func bytes(_ stream: StreamName, _ epoch: Epoch, _ partition: Int) -> [UInt8] {
        opening(stream, epoch, partition) + body + closing
    }
}
