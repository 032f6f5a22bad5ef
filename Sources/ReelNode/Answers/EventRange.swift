public import ReelCore
public import ReelNet

/// The events of one stream in `from ... to` in the form for clients. Each event is `{"seq":n,` and the record's value
/// without its first byte. Commas separate the events.
public struct EventRange: Sendable, Equatable {
    /// The first seq that the chunk proves.
    public var from: Seq
    /// The last seq that the chunk proves; `from − 1` proves nothing.
    public var to: Seq
    /// The number of events.
    public private(set) var count = 0
    /// The events, separated by commas.
    public private(set) var body: [UInt8] = []

    /// A chunk without events that proves the range `from ... to`.
    ///
    /// - Parameters:
    ///   - from: The first seq that the chunk proves.
    ///   - to: The last seq that the chunk proves; `from − 1` proves nothing.
    ///   - room: The expected size of the events in bytes.
    public init(from: Seq, to: Seq, room: Int = 0) {
        self.from = from
        self.to = to
        body.reserveCapacity(room)
    }

    /// The maximum size of `,{"seq":n,` in bytes.
    private static let envelopeBytes = 28
    /// The maximum size of the text around stream, `ref` and events in a frame, in bytes.
    private static let frameHeadBytes = 104

    /// Returns the maximum number of bytes that an event without an outcome adds. `value` is the size of its value in
    /// bytes.
    public static func size(value: Int) -> Int { value + envelopeBytes }

    /// Adds an event.
    ///
    /// - Parameters:
    ///   - seq: The seq of the event.
    ///   - value: The value of its record.
    ///   - outcome: The outcome of the event; nil: it is not added.
    public mutating func append(seq: Seq, value: Bytes, outcome: String? = nil) {
        if count > 0 { body.append(UInt8(ascii: ",")) }
        count += 1
        DeliveredEvent.write(seq: seq, outcome: outcome, value: value, to: &body)
    }

    /// Returns an `events` frame with the chunk; `ref` is JSON text.
    public func frame(stream: StreamName, ref: [UInt8]? = nil) -> WebSocketFrame {
        let name = stream.description.utf8
        var head: [UInt8] = []
        head.reserveCapacity(name.count + (ref?.count ?? 0) + Self.frameHeadBytes)
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
