import ReelCore

/// The answer of a node to published events: the seq of each.
struct Acks {
    /// An acknowledgement: the event is durable at `seq`.
    struct Ack {
        /// The bytes of the node's answer.
        var bytes: [UInt8] = []
        var site = ""
        var op: Op = 0
        var seq = Seq.none
        /// The outcome of the event; empty if it was not requested.
        var outcome = ""
    }

    private(set) var epoch = ""
    /// The reason why the node does not tell the outcomes; nil if it does, or was not asked.
    private(set) var noOutcome: String?
    private(set) var acks: [Ack] = []

    /// Parses the body of an answer.
    ///
    /// - Throws: a `CommandError` with exit code 4 if it is not such an answer.
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
    /// Parses an ack, or a delivered event: their members have the same names.
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
