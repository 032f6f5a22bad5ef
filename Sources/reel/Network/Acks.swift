import ReelCore

/// What a node answers to events that it took: where each of them stands.
struct Acks {
    /// An ack: durable at seq.
    struct Ack {
        /// As the node said it.
        var bytes: [UInt8] = []
        var site = ""
        var op: Op = 0
        var seq = Seq.none
        /// What the event came to, where that was asked for; else empty.
        var outcome = ""
    }

    private(set) var epoch = ""
    /// Why the node does not say what the events came to; nil: it does, or was not asked.
    private(set) var noOutcome: String?
    private(set) var acks: [Ack] = []

    /// Ends with 4 for what is no such answer.
    init(_ body: [UInt8]) throws(CommandError) {
        try JSONReader.members(ofAnswer: body) { (reader, key) throws(ReelError) in
            switch key.raw {
            case "epoch": epoch = try reader.string()
            case "acks":
                try reader.array { (reader) throws(ReelError) in acks.append(try Ack(try reader.raw())) }
            case "no_outcome":
                try reader.object { (reader, key) throws(ReelError) in
                    if "detail" ~= key.raw { noOutcome = try reader.string() } else { try reader.skip() }
                }
            default: try reader.skip()
            }
        }
    }
}

extension Acks.Ack {
    /// Of an ack, or of an event as it is delivered: the members are called the same.
    init(_ bytes: Bytes) throws(ReelError) {
        self.bytes = Array(bytes)
        var reader = JSONReader(bytes, levels: ClientFrame.levels, shape: .badFrame)
        try reader.object { (reader, key) throws(ReelError) in
            switch key.raw {
            case "site": site = try reader.string()
            case "op": op = try reader.integer()
            case "seq": seq = try reader.integer()
            case "outcome": outcome = try reader.string()
            default: try reader.skip()
            }
        }
    }
}
