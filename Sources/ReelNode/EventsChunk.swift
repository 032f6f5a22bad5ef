public import ReelCore

/// Events of one stream as they go to clients: all of them in `from ... to`, each `{"seq":n,` and the record's value
/// without its first byte, parted by commas.
public struct EventsChunk: Sendable, Equatable {
    /// The first seq that the chunk proves.
    public var from: Seq
    /// The last seq that the chunk proves; `from − 1` proves nothing.
    public var to: Seq
    /// How many events it holds.
    public private(set) var count = 0
    /// The events, parted by commas.
    public private(set) var body: [UInt8] = []

    /// A chunk without events that proves this range.
    public init(from: Seq, to: Seq) {
        self.from = from
        self.to = to
    }

    /// How many bytes an event of this value adds at most.
    public static func size(value: Int) -> Int { value + 28 }

    /// Adds the event that stands at `seq`.
    public mutating func append(seq: Seq, value: Bytes) {
        if count > 0 { body.append(UInt8(ascii: ",")) }
        count += 1
        DeliveredEvent.write(seq: seq, value: value, to: &body)
    }

    /// An `events` frame that holds the chunk; `ref` is JSON text.
    public func frame(stream: StreamName, ref: [UInt8]? = nil) -> [UInt8] {
        var frame: [UInt8] = []
        frame.reserveCapacity(body.count + 256)
        frame.append(#"{"t":"events","stream":""#)
        frame.append(contentsOf: stream.description.utf8)
        frame.append(#"","from":"#)
        frame.append(integer: from)
        frame.append(#","to":"#)
        frame.append(integer: to)
        if let ref {
            frame.append(#","ref":"#)
            frame.append(contentsOf: ref)
        }
        frame.append(#","events":["#)
        frame.append(contentsOf: body)
        frame.append("]}")
        return frame
    }
}
