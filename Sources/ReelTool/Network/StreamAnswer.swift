import ReelCore

/// The answer of a node to a request for a range of a stream, or for its head.
struct StreamAnswer {
    /// A delivered event: its seq, and the bytes of its JSON.
    struct Event {
        var seq: Seq
        var bytes: [UInt8]
    }

    var epoch = ""
    var partition: Int64 = 0
    /// The first and the last seq that the answer proves.
    var from = Seq.none
    var to = Seq.none
    /// The first and the last seq of the partition that can be read.
    var first = Seq.none
    var head = Seq.none
    var events: [Event] = []

    /// Parses the body of an answer.
    ///
    /// - Throws: a `CommandError` with exit code 4 if it is not such an answer.
    init(_ body: [UInt8]) throws(CommandError) {
        try JSONReader.members(ofAnswer: body) { (reader, key) throws(ReelError) in
            switch key.raw {
            case "epoch": epoch = try reader.string()
            case "partition": partition = try reader.integer()
            case "from": from = try reader.integer(from: -1)
            case "to": to = try reader.integer(from: -1)
            case "first": first = try reader.integer(from: -1)
            case "head": head = try reader.integer(from: -1)
            case "events":
                try reader.array { (reader) throws(ReelError) in
                    let bytes = try reader.raw()
                    events.append(Event(seq: try DeliveredEvent(bytes).seq, bytes: Array(bytes)))
                }
            default: try reader.skip()
            }
        }
    }
}
