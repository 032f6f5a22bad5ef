public import ReelCore

/// The outcome of an acknowledged event.
public struct AckOutcome: Equatable, Sendable {
    /// The copy of an event that the fold consumed, for an ack of a later copy.
    public struct First: Equatable, Sendable {
        /// The seq of the copy.
        public var seq: Seq
        /// The outcome of the copy: applied, or rejected.
        public var outcome: Outcome
        /// True if both copies have the same content except for their stamps and bases.
        public var isSame: Bool

        /// A consumed copy.
        public init(seq: Seq, outcome: Outcome, isSame: Bool) {
            (self.seq, self.outcome, self.isSame) = (seq, outcome, isSame)
        }
    }

    /// The event and its seq.
    public var ack: ServerFrame.Acked
    /// The outcome of the event.
    public var outcome: Outcome
    /// For a duplicate: the copy that was consumed, if the node still has it.
    public var first: First?

    /// An outcome of an acknowledged event.
    public init(_ ack: ServerFrame.Acked, _ outcome: Outcome, first: First? = nil) {
        (self.ack, self.outcome, self.first) = (ack, outcome, first)
    }

    /// True if the op was consumed before with other content, so that the event never has an effect.
    public var isConflict: Bool { first?.isSame == false }

    /// The error code of an event that was not consumed, neither itself nor as an earlier copy; nil for all other
    /// events.
    public var failure: ErrorCode? {
        if isConflict { return .conflict }
        switch outcome {
        case .gap: return .gap
        case .stale: return .stale
        case .tooManySites: return .tooManySites
        case .foreign: return .foreign
        default: return nil
        }
    }

    /// The word for clients: the word of the outcome, or `conflict`.
    public var word: String { isConflict ? ErrorCode.conflict.rawValue : outcome.description }
}

extension AckOutcome {
    /// Reads an object that `write(to:)` wrote.
    public init(_ object: JSONObject) throws(ReelError) {
        let ack = try ServerFrame.Acked(object)
        let word = try object.required("outcome", object.string("outcome"))
        var first: First?
        if let copy = try object.object("first") {
            let seq = try copy.required("seq", copy.integer("seq"))
            let outcome = try Self.outcome(copy.required("outcome", copy.string("outcome")), copy)
            first = First(seq: seq, outcome: outcome, isSame: word != ErrorCode.conflict.rawValue)
        }
        let isConflict = word == ErrorCode.conflict.rawValue && first != nil
        self.init(ack, isConflict ? .duplicate : try Self.outcome(word, object), first: first)
    }

    private static func outcome(_ word: String, _ object: JSONObject) throws(ReelError) -> Outcome {
        guard let outcome = Outcome(word) else { throw object.mismatch("found the outcome \(word.debugDescription)") }
        return outcome
    }

    /// Writes the members of an ack with its outcome.
    package func write(to writer: inout JSONObjectWriter) {
        writer.members(of: ack)
        writer.member("outcome", word)
        guard let first else { return }
        writer.object("first") { writer in
            writer.member("seq", first.seq)
            writer.member("outcome", first.outcome.description)
        }
    }

    /// Returns the outcomes in the body of a response to `POST …/outcomes`. Throws if the body is not such a response.
    public static func read(_ body: [UInt8]) throws(ReelError) -> [AckOutcome] {
        try body.withUnsafeBufferPointer { (bytes) throws(ReelError) in
            let object = try JSONObject(Bytes(bytes), levels: 6, shape: .internal)
            let rows = try object.elements("acks") ?? []
            var outcomes: [AckOutcome] = []
            outcomes.reserveCapacity(rows.count)
            for row in rows { outcomes.append(try AckOutcome(JSONObject(row, levels: 4, shape: .internal))) }
            return outcomes
        }
    }
}
