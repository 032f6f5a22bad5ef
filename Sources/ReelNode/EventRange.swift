public import ReelCore
public import ReelNet

/// Events of one stream as they go to clients: all of them in `from ... to`, each `{"seq":n,` and the record's value
/// without its first byte, parted by commas.
public struct EventRange: Sendable, Equatable {
    /// The first seq that the chunk proves.
    public var from: Seq
    /// The last seq that the chunk proves; `from − 1` proves nothing.
    public var to: Seq
    /// How many events it holds.
    public private(set) var count = 0
    /// The events, parted by commas.
    public private(set) var body: [UInt8] = []

    /// A chunk without events that proves this range, with room for so many bytes of them.
    public init(from: Seq, to: Seq, room: Int = 0) {
        self.from = from
        self.to = to
        body.reserveCapacity(room)
    }

    /// How many bytes an event of this value adds at most.
    public static func size(value: Int) -> Int { value + 28 }

    /// Adds the event that stands at `seq`, with what became of it where that is given.
    public mutating func append(seq: Seq, value: Bytes, outcome: String? = nil) {
        if count > 0 { body.append(UInt8(ascii: ",")) }
        count += 1
        DeliveredEvent.write(seq: seq, outcome: outcome, value: value, to: &body)
    }

    /// An `events` frame that holds the chunk; `ref` is JSON text.
    public func frame(stream: StreamName, ref: [UInt8]? = nil) -> WebSocketFrame {
        let name = stream.description.utf8
        var head: [UInt8] = []
        head.reserveCapacity(name.count + (ref?.count ?? 0) + 104)
        head.append(#"{"t":"events","stream":""#)
        head.append(contentsOf: name)
        head.append(#"","from":"#)
        head.append(integer: from)
        head.append(#","to":"#)
        head.append(integer: to)
        if let ref {
            head.append(#","ref":"#)
            head.append(contentsOf: ref)
        }
        head.append(#","events":["#)
        return WebSocketFrame.text(joining: head, body, Array("]}".utf8))
    }
}
