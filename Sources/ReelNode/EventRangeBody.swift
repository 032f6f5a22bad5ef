public import ReelCore

/// What `GET …/events` answers: `{"stream","epoch","partition","from","head","events","to"}`. `to` stands last: an
/// answer can be sent piece by piece, and says at its end how far it got.
public struct EventRangeBody: Sendable {
    /// Where it begins.
    public var from: Seq
    /// The last seq that the answer proves; `from − 1` proves nothing.
    public var to: Seq
    /// The last seq of the partition that can be read.
    public var head: Seq
    /// How many events it has got.
    public private(set) var count = 0
    /// How many bytes of events it has got.
    public private(set) var byteCount = 0
    /// The events that were not taken out yet, parted by commas.
    public private(set) var body: [UInt8] = []

    /// An answer that proves nothing yet, or up to `to` without events.
    public init(from: Seq, to: Seq? = nil, head: Seq) {
        self.from = from
        self.to = to ?? from - 1
        self.head = head
    }

    /// Goes on with a chunk.
    public mutating func append(_ chunk: EventRange) {
        to = chunk.to
        guard chunk.count > 0 else { return }
        if count > 0 { body.append(UInt8(ascii: ",")) }
        body += chunk.body
        count += chunk.count
        byteCount += chunk.body.count
    }

    /// Takes the events out that it has got since the last time, with the comma before them.
    public mutating func takeBody() -> [UInt8] {
        let taken = body
        body = []
        return taken
    }

    /// Everything before the events.
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

    /// Everything behind the events.
    public var closing: [UInt8] {
        var closing = Array(#"],"to":"#.utf8)
        closing.append(integer: to)
        closing.append(UInt8(ascii: "}"))
        return closing
    }

    /// The whole answer.
    public func bytes(_ stream: StreamName, _ epoch: Epoch, _ partition: Int) -> [UInt8] {
        opening(stream, epoch, partition) + body + closing
    }
}
