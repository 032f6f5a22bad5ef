import ReelCore
import ReelNet
import ReelNode

// Outcomes of events, for clients that ask for them.
extension GatewayLoop {
    /// Calls `then` later with the outcomes of acked events.
    func ask(
        _ question: OutcomeQuestions.Question,
        then: @escaping (Result<[AckOutcome], Problem>) -> Void
    ) {
        if let outcomes { return outcomes.ask(question, then: then) }
        loop.schedule { then(.failure(Problem(.nodeBehind, "this node asks no snapshot node"))) }
    }

    /// Calls `then` later with the same events, each with its outcome, once a snapshot node has folded them. An event
    /// from before the node's index is `unknown`; a barrier has no outcome.
    func addOutcomes(
        to piece: EventRange,
        of stream: StreamName,
        for access: Access,
        then: @escaping (Result<EventRange, Problem>) -> Void
    ) {
        let events: [DeliveredEvent]
        do throws(ReelError) {
            events = try piece.events
        } catch {
            return loop.schedule { then(.failure(Problem(error))) }
        }
        let acks = events.compactMap { event in
            event.value.withUnsafeBytes { EventIntake.author(of: $0) }.map { author in
                ServerFrame.Acked(site: author.site, op: author.op, seq: event.seq)
            }
        }
        words(for: acks, of: stream, for: access) { result in
            then(result.map { piece.with(events, outcomes: $0, of: Set(acks.map(\.seq))) })
        }
    }

    /// Calls `then` later with the outcomes by seq. Those that no node knows any more are missing.
    private func words(
        for acks: [ServerFrame.Acked],
        of stream: StreamName,
        for access: Access,
        then: @escaping (Result<[Seq: String], Problem>) -> Void
    ) {
        guard !acks.isEmpty else { return loop.schedule { then(.success([:])) } }
        let question = OutcomeQuestions.Question(
            acks: acks,
            stream: stream,
            authorization: access.authorization,
            withinMs: context.settings.peerMs,
            isRequired: true
        )
        ask(question) { [self] result in
            switch result {
            case .success(let rows):
                then(.success(Dictionary(rows.map { ($0.ack.seq, $0.word) }) { first, _ in first }))
            case .failure(let problem) where problem.code == .truncated:
                guard let first = problem.first else { return then(.success([:])) }
                let later = acks.filter { $0.seq >= first }
                guard later.count < acks.count else { return then(.success([:])) }
                words(for: later, of: stream, for: access, then: then)
            case .failure(let problem): then(.failure(problem))
            }
        }
    }
}

extension EventRange {
    /// The single events of the range.
    fileprivate var events: [DeliveredEvent] {
        get throws(ReelError) {
            let list = [UInt8(ascii: "[")] + body + [UInt8(ascii: "]")]
            return try list.withUnsafeBufferPointer { (bytes) throws(ReelError) in
                var reader = JSONReader(Bytes(bytes), levels: Limits.depth + 1, shape: .internal)
                var events: [DeliveredEvent] = []
                events.reserveCapacity(count)
                try reader.array { (reader) throws(ReelError) in events.append(try DeliveredEvent(try reader.raw())) }
                return events
            }
        }
    }

    /// Returns the same range with these events and their outcomes. `seqs` has the seqs of the events that have an
    /// outcome.
    fileprivate func with(
        _ events: [DeliveredEvent],
        outcomes: [Seq: String],
        of seqs: Set<Seq>
    ) -> EventRange {
        var piece = EventRange(from: from, to: to, room: body.count + 24 * count)
        for event in events {
            event.value.withUnsafeBytes { value in
                let outcome = seqs.contains(event.seq) ? outcomes[event.seq] ?? "unknown" : nil
                piece.append(seq: event.seq, value: value, outcome: outcome)
            }
        }
        return piece
    }
}
