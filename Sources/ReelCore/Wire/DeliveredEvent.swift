/// An event as it is delivered: its seq, and the value of its record.
public struct DeliveredEvent: Equatable, Sendable {
    /// Its number in the partition.
    public var seq: Seq
    /// The record's value, to the byte.
    public var value: [UInt8]

    /// A delivered event.
    public init(seq: Seq, value: [UInt8]) {
        self.seq = seq
        self.value = value
    }

    /// Takes `{"seq":n,` + the value without its first byte apart. Throws `bad_event` for anything else.
    public init(_ delivered: Bytes) throws(ReelError) {
        var reader = CanonicalReader(delivered, code: .badEvent)
        try reader.literal(#"{"seq":"#)
        seq = try reader.integer()
        try reader.expect(ASCII.comma)
        value = [ASCII.openBrace]
        value.reserveCapacity(delivered.count - reader.position + 1)
        value.append(contentsOf: delivered[reader.position...])
    }

    /// Appends the event of a record as it is delivered: `{"seq":n,` + the value without its first byte. What became of
    /// it, where it is given, stands between both.
    public static func write(seq: Seq, outcome: String? = nil, value: Bytes, to bytes: inout [UInt8]) {
        bytes.append(#"{"seq":"#)
        bytes.append(integer: seq)
        if let outcome {
            bytes.append(#","outcome":"#)
            bytes.append(quoted: outcome)
        }
        bytes.append(ASCII.comma)
        bytes.append(contentsOf: value.dropFirst())
    }
}
