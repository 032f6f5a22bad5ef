internal import ReelCore

/// Own events that a state has covered. The state shows that their ops were consumed. It does not show if the events
/// had an effect, nor if they are those of this device. A node is asked for their contents and outcomes, one site after
/// the other.
struct CoveredEvents: Sendable {
    /// An own event that a state has covered.
    struct Event: Sendable {
        var author: EventID
        /// The number of the event in the queue.
        var number: Int64
        /// The event lies after this seq.
        var after: Seq
        /// The bytes of the event as this device has sent them.
        var content: [UInt8]
    }

    /// The events of one site that one state has covered.
    struct Question: Sendable {
        let site: Site
        let epoch: Epoch
        /// All events lie at or below this seq.
        let last: Seq
        /// The seq after which the events are looked for.
        fileprivate(set) var position: Seq
        /// The number of each event, the hash of its content, and a seq after which it lies.
        fileprivate var events: [Op: (number: Int64, hash: UInt64, after: Seq)] = [:]
        fileprivate var pages = 0
    }

    /// The number of an event in the queue, and the fact that decides about it.
    typealias Found = (number: Int64, fact: Outbox.CoveredFact)

    /// The number of successive failures after which the outcomes stay unknown.
    static let attemptsMax = 8
    /// The pause after the first failure, which doubles with each further one, and its limit.
    private static let (pauseMs, pauseMsMax): (Int64, Int64) = (1_000, 30_000)
    /// The maximum number of answers to one question. A node could cut its answers for ever.
    private static let pagesMax = 1_000

    private var questions: ArraySlice<Question> = []
    private var failures = 0

    /// The present question; nil: all outcomes are known.
    var question: Question? { questions.first }

    /// Adds the events that a state has covered. `last`: the seq of the state.
    mutating func add(_ events: [Event], epoch: Epoch, last: Seq) {
        for (site, events) in Dictionary(grouping: events, by: \.author.site) {
            let after = events.reduce(last) { min($0, $1.after) }
            var question = Question(site: site, epoch: epoch, last: last, position: after)
            for event in events {
                question.events[event.author.op] = (event.number, Self.hash(event.content), event.after)
            }
            questions.append(question)
        }
    }

    /// Takes the outcomes from an answer to the present question.
    ///
    /// - Parameters:
    ///   - events: the events of the answer, with their outcomes.
    ///   - to: the last seq that the answer proves.
    /// - Throws: `node_behind` for an answer that proves nothing new.
    mutating func answered(_ events: [DeliveredEvent], to: Seq) throws(ReelError) -> [Found] {
        guard var question = questions.first else { return [] }
        guard to > question.position || question.position >= question.last else {
            throw ReelError(.nodeBehind, "found no events after seq \(question.position)")
        }
        var found: [Found] = []
        for event in events {
            // A barrier of the partition has no site.
            guard let (op, outcome, content) = Self.read(event, of: question.site),
                let (number, hash, _) = question.events[op]
            else { continue }
            let told: PublishOutcome
            switch outcome {
            case .applied: told = .applied(event.seq)
            case .rejected(let code): told = .rejected(code, event.seq)
            default: continue
            }
            // An event with other content was made by another device.
            found.append((number, hash == Self.hash(content) ? .own(told) : .other))
            question.events[op] = nil
        }
        failures = 0
        question.position = max(question.position, to)
        question.pages += 1
        questions[questions.startIndex] = question
        let isOver = question.events.isEmpty || to >= question.last || question.pages >= Self.pagesMax
        return isOver ? found + giveUpQuestion() : found
    }

    /// Reads an event with its outcome. Returns nil for anything else, and for an event of another site.
    private static func read(
        _ delivered: DeliveredEvent,
        of site: Site
    ) -> (op: Op, outcome: Outcome, content: [UInt8])? {
        guard let (outcome, record) = delivered.outcomeAndRecord else { return nil }
        return record.withUnsafeBytes { bytes -> (op: Op, outcome: Outcome, content: [UInt8])? in
            var event = ParsedEvent()
            guard (try? event.parse(bytes)) != nil, event.site == site else { return nil }
            return (event.op, outcome, event.content(of: bytes))
        }
    }

    private static func hash(_ content: [UInt8]) -> UInt64 {
        var hash = FNV1a()
        content.withUnsafeBytes { hash.add($0) }
        return hash.finished
    }

    /// Records a failed attempt. Returns the events for which no later attempt can help, and all events after the last
    /// attempt.
    mutating func failed(_ error: ReelError) -> [Found] {
        failures += 1
        switch error.code {
        case .truncated:
            failures = 0
            return giveUpOldest()
        // The state of the next log shows if that log has the events. Until then nothing is known of them.
        case .epochChanged, .aheadOfLog, .diverged: return []
        case .forbidden, .badRange, .badRequest, .badStream, .notFound: return giveUpQuestion()
        default: return failures >= Self.attemptsMax ? giveUp() : []
        }
    }

    /// Returns the pause before the next attempt, in milliseconds.
    func retryMs(after error: ReelError) -> Int64 {
        min(max(Self.pauseMs << Int64(min(max(0, failures - 1), 5)), error.retryMs ?? 0), Self.pauseMsMax)
    }

    /// Takes the events of the present question that may lie where the log was trimmed. Later ones may still be there.
    private mutating func giveUpOldest() -> [Found] {
        guard var question = questions.first else { return [] }
        let left = question.events.filter { $0.value.after > question.position }
        guard let next = left.values.map(\.after).min() else { return giveUpQuestion() }
        let oldest = question.events.values.filter { $0.after <= question.position }
        question.events = left
        question.position = next
        questions[questions.startIndex] = question
        return oldest.map { ($0.number, .unknown) }
    }

    /// Takes the events of the present question.
    private mutating func giveUpQuestion() -> [Found] {
        failures = 0
        guard let question = questions.popFirst() else { return [] }
        return question.events.values.map { ($0.number, .unknown) }
    }

    /// Takes all events.
    private mutating func giveUp() -> [Found] {
        var left: [Found] = []
        while !questions.isEmpty { left += giveUpQuestion() }
        return left
    }
}
