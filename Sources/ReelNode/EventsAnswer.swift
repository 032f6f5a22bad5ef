public import ReelCore

/// What `GET …/events` answers: `{"stream","epoch","partition","from","to","head","events"}`.
public struct EventsAnswer: Sendable {
    /// Where and how much is answered.
    public var from: Seq
    /// The last seq that the answer proves; `from − 1` proves nothing.
    public var to: Seq
    /// The last seq of the partition that can be read.
    public var head: Seq
    /// How many events it holds.
    public private(set) var count = 0
    /// The events, parted by commas.
    public private(set) var body: [UInt8] = []

    /// What stands behind the events.
    public static let closing = Array("]}".utf8)

    /// An answer that proves nothing yet, or up to `to` without events.
    public init(from: Seq, to: Seq? = nil, head: Seq) {
        self.from = from
        self.to = to ?? from - 1
        self.head = head
    }

    /// Goes on with a chunk.
    public mutating func append(_ chunk: EventsChunk) {
        to = chunk.to
        guard chunk.count > 0 else { return }
        if count > 0 { body.append(UInt8(ascii: ",")) }
        body += chunk.body
        count += chunk.count
    }

    /// Everything before the events.
    public func opening(_ stream: StreamName, _ epoch: Epoch, _ partition: Int) -> [UInt8] {
        var writer = JSONObjectWriter()
        writer.member("stream", stream.description)
        writer.member("epoch", epoch.description)
        writer.member("partition", partition)
        writer.member("from", from)
        writer.member("to", to)
        writer.member("head", head)
        writer.member("events") { $0.append(UInt8(ascii: "[")) }
        return Array(writer.finish().dropLast())
    }

    /// The whole answer.
    public func bytes(_ stream: StreamName, _ epoch: Epoch, _ partition: Int) -> [UInt8] {
        opening(stream, epoch, partition) + body + Self.closing
    }
}
