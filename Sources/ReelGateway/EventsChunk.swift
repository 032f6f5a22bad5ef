import ReelCore
import ReelLog

/// Events of one stream as they go to clients: all of them in `from ... to`, each `{"seq":n,` and the record's value
/// without its first byte, parted by commas.
struct EventsChunk: Sendable, Equatable {
    var from: Seq
    /// The last seq that the chunk proves; `from − 1` proves nothing.
    var to: Seq
    private(set) var count = 0
    private(set) var body: [UInt8] = []

    init(from: Seq, to: Seq) {
        self.from = from
        self.to = to
    }

    /// How many bytes an event of this value adds at most.
    static func size(value: Int) -> Int { value + 28 }

    mutating func append(seq: Seq, value: UnsafeRawBufferPointer) {
        if count > 0 { body.append(UInt8(ascii: ",")) }
        count += 1
        DeliveredEvent.write(seq: seq, value: value, to: &body)
    }

    /// An `events` frame that holds the chunk; `ref` is JSON text.
    func frame(stream: StreamName, ref: [UInt8]? = nil) -> [UInt8] {
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
