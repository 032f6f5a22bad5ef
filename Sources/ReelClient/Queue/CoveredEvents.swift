internal import ReelCore

/// Own events that a state has covered. The state shows that they were consumed, and not if they had an effect.
struct CoveredEvents: Sendable {
    /// The number of attempts to learn the outcomes of a site's events.
    static let attemptsMax = 3

    let epoch: Epoch
    /// All events lie after this seq, and at or below `last`.
    private var after: Seq
    private var last: Seq
    /// The seq after which the events of the present site are looked for.
    private(set) var position: Seq
    /// The number in the queue of each event whose outcome is not known.
    private var numbers: [EventID: Int64] = [:]
    /// The seq of each of these events as the state shows it, by number.
    private var seqs: [Int64: Seq?] = [:]
    private var failures = 0

    init(_ epoch: Epoch) {
        (self.epoch, after, last, position) = (epoch, .max, .none, .max)
    }

    var isEmpty: Bool { numbers.isEmpty }

    /// Adds the events that a state has covered.
    ///
    /// - Parameters:
    ///   - events: the events, with their numbers in the queue.
    ///   - after: the last seq that was folded before the state.
    ///   - last: the seq of the state.
    mutating func add(_ events: [EventID: Int64], after: Seq, last: Seq) {
        if events.isEmpty { return }
        (self.after, self.last) = (min(self.after, after), max(self.last, last))
        position = self.after
        numbers.merge(events) { _, new in new }
        for number in events.values { seqs[number] = .some(nil) }
        failures = 0
    }

    /// Records the seq of an event as the state shows it. Returns false if the outcome of the event is not awaited.
    mutating func settled(_ number: Int64, _ seq: Seq?) -> Bool {
        guard seqs[number] != nil else { return false }
        seqs[number] = .some(seq)
        return true
    }

    /// Takes the outcomes from the events of an answer. Returns them with their numbers in the queue.
    mutating func take(_ events: [DeliveredEvent]) throws(ReelError) -> [(number: Int64, outcome: PublishOutcome)] {
        var found: [(number: Int64, outcome: PublishOutcome)] = []
        for event in events {
            let (author, outcome) = try event.value.lend { (bytes) throws(ReelError) in
                let object = try JSONObject(bytes, levels: ClientFrame.levels, shape: .badFrame)
                let site = try object.required("site", object.site())
                let op = try object.required("op", object.integer("op"))
                return (EventID(site: site, op: op), try object.string("outcome").flatMap { Outcome($0) })
            }
            let known: PublishOutcome? =
                switch outcome {
                case .applied: .applied(event.seq)
                case .rejected(let code): .rejected(code, event.seq)
                default: nil
                }
            guard let known, let number = numbers.removeValue(forKey: author) else { continue }
            seqs[number] = nil
            found.append((number, known))
        }
        return found
    }

    /// Continues after an answer that ends at this seq. Returns true if all events of the site were looked for.
    mutating func answered(to seq: Seq) -> Bool {
        failures = 0
        defer { position = max(position, seq) }
        return seq <= position || seq >= last
    }

    /// Records a failed attempt. Returns true if it was the last one.
    mutating func failed() -> Bool {
        failures += 1
        return failures >= Self.attemptsMax
    }

    /// The site whose events are looked for; nil: all outcomes are known.
    var site: Site? { numbers.keys.first?.site }

    /// Takes all events of a site with the outcome that the state shows. `site`: nil for all sites.
    mutating func giveUp(_ site: Site? = nil) -> [(number: Int64, outcome: PublishOutcome)] {
        let left = numbers.filter { site == nil || $0.key.site == site }
        (position, failures) = (after, 0)
        return left.map { author, number in
            numbers[author] = nil
            return (number, .consumed(seqs.removeValue(forKey: number) ?? nil))
        }
    }
}
