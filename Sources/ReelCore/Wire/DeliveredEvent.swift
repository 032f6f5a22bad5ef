/// An event in the form of delivery: its seq, and the value of its record.
public struct DeliveredEvent: Equatable, Sendable {
    /// The seq of the event in its partition.
    public var seq: Seq
    /// The record's value, byte for byte.
    public var value: [UInt8]

    /// Creates a delivered event.
    public init(seq: Seq, value: [UInt8]) {
        self.seq = seq
        self.value = value
    }

    /// Parses `{"seq":n,` followed by the value without its first byte. Throws `bad_event` for any other form.
    public init(_ delivered: Bytes) throws(ReelError) {
        var reader = CanonicalReader(delivered, code: .badEvent)
        try reader.literal(#"{"seq":"#)
        seq = try reader.integer()
        try reader.expect(ASCII.comma)
        value = [ASCII.openBrace]
        value.reserveCapacity(delivered.count - reader.position + 1)
        value.append(contentsOf: delivered[reader.position...])
    }

    /// The outcome of the event, and the value of its record without it. Nil if the event was delivered without an
    /// outcome.
    public var outcomeAndRecord: (outcome: Outcome, record: [UInt8])? {
        let member = Array(#"{"outcome":""#.utf8)
        guard value.starts(with: member), let quote = value[member.count...].firstIndex(of: ASCII.quote),
            let outcome = Outcome(String(decoding: value[member.count..<quote], as: UTF8.self)),
            quote + 1 < value.count, value[quote + 1] == ASCII.comma
        else { return nil }
        return (outcome, [ASCII.openBrace] + value[(quote + 2)...])
    }

    /// Appends the event of a record in the form of delivery: `{"seq":n,` and the value without its first byte.
    ///
    /// - Parameters:
    ///   - seq: the seq of the event in its partition.
    ///   - outcome: the outcome of the event, whose member follows the seq; nil: there is no such member.
    ///   - value: the value of the record.
    ///   - bytes: the bytes to append to.
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
