import ReelCore
import ReelLog
import ReelNet
import ReelNode

/// Asks for the outcomes of acked events: this process, if it has the state, or a known snapshot node. Each question is
/// answered within its time. On its loop only.
final class OutcomeQuestions {
    /// Backoff of a snapshot node that did not answer. A request with `outcome=1` ignores it.
    private static let restMs: Int64 = 5_000
    /// An answer has at most 1,000 acks of about 200 bytes.
    private static let answerBytes = 4 << 20
    /// The timeout of one node, if there is another one to ask.
    private static let nodeMs: Int64 = 1_000

    private let client: PeerClient
    private let announcer: Announcer
    private let source: (any StateSource)?
    /// The id of this node, which announces itself among the others.
    private let own: String
    private let (epoch, partitions): (Epoch, Int)
    private var warnings = LineLimiter(lines: 1, windowMs: 10_000)
    private var turn = 0
    /// The nodes that are not asked at present.
    private var resting = ExpiringSet<String>()

    init(_ client: PeerClient, announcer: Announcer, of log: any EventLog, state: (any StateSource)?, own: String) {
        self.client = client
        self.announcer = announcer
        source = state
        self.own = own
        (epoch, partitions) = (log.epoch, log.partitions)
    }

    private var loop: EventLoop { client.loop }

    /// A question for the outcomes of events.
    struct Question {
        var acks: [ServerFrame.Acked]
        var stream: StreamName
        /// `Authorization` of the client, for the node that is asked.
        var authorization: String?
        /// The timeout of the whole question.
        var withinMs: Int64
        /// True for `outcome=1`: then nodes that have just failed are asked too.
        var isRequired: Bool
    }

    /// Calls `then` later with the outcomes of the events, in the order of the acks.
    func ask(_ question: Question, then: @escaping (Result<[AckOutcome], Problem>) -> Void) {
        if let source, source.canAnswer(StateRequest(.snapshot(epoch: nil), of: question.stream)) {
            return source.outcomes(
                of: question.acks,
                in: question.stream,
                epoch: epoch,
                withinMs: question.withinMs,
                on: loop,
                then: then
            )
        }
        turn += 1
        let partition = question.stream.partition(of: partitions)
        let nowMs = loop.nowMs
        let nodes = SnapshotProxy.order(
            announcer.nodes.filter { $0.id != own && client.access.canAsk($0) },
            alive: announcer.alive,
            epoch: epoch,
            partition,
            turn: turn
        )
        // A node that did not answer lately is asked last, or not at all.
        let rested = nodes.filter { !resting.contains($0.id, nowMs: nowMs) }
        let able = question.isRequired ? rested + nodes.filter { resting.contains($0.id, nowMs: nowMs) } : rested
        // An incomplete state of this process does not answer soon.
        let failure = source.map { _ in Problem(.nodeBehind, "the folded state of this node is not complete") }
        ask(able[...], question, untilMs: nowMs + question.withinMs, failure, then)
    }

    private func ask(
        _ nodes: ArraySlice<NodeAnnouncement>,
        _ question: Question,
        untilMs: Int64,
        _ failure: Problem?,
        _ then: @escaping (Result<[AckOutcome], Problem>) -> Void
    ) {
        let leftMs = untilMs - loop.nowMs
        guard let node = nodes.first, leftMs > 0 else {
            return loop.schedule {
                then(.failure(failure ?? Problem(.nodeBehind, "found no snapshot node that answers")))
            }
        }
        let rest = nodes.dropFirst()
        let waitMs = rest.isEmpty ? leftMs : min(leftMs, Self.nodeMs)
        let asked = StateRequest(.outcomes(of: question.acks, epoch: epoch), of: question.stream)
        let request = client.request(to: node, authorization: question.authorization, timeout: .milliseconds(waitMs)) {
            HTTPClientRequest(asked, $0)
        }
        guard let request else { return ask(rest, question, untilMs: untilMs, failure, then) }
        client.fetch(request, bytesMax: Self.answerBytes) { [self] result in
            switch Self.outcomes(result, count: question.acks.count) {
            case .success(let outcomes): then(.success(outcomes))
            case .failure(let problem) where problem.status < 500 && !problem.code.isLoss: then(.failure(problem))
            case .failure(var problem):
                if case .failure(let error) = result {
                    client.warn("a snapshot node does not answer", node, error.message, &warnings)
                    if error.code == .timedOut {
                        problem.detail = "a snapshot node has not answered within \(waitMs) ms"
                    }
                }
                resting.insert(node.id, untilMs: loop.nowMs + Self.restMs, nowMs: loop.nowMs)
                ask(rest, question, untilMs: untilMs, problem, then)
            }
        }
    }

    /// Returns the outcomes in a node's answer.
    private static func outcomes(
        _ result: Result<HTTPResponse, NetError>,
        count: Int
    ) -> Result<[AckOutcome], Problem> {
        switch result {
        case .failure:
            return .failure(Problem(.nodeBehind, "a snapshot node does not answer"))
        case .success(let response) where response.status != 200:
            return .failure(Problem(refusal: response))
        case .success(let response):
            do throws(ReelError) {
                let outcomes = try AckOutcome.read(response.body)
                if outcomes.count == count { return .success(outcomes) }
                return .failure(Problem(.nodeBehind, "a snapshot node answered with other acks than it was asked for"))
            } catch {
                return .failure(Problem(.nodeBehind, "a snapshot node's answer cannot be read: \(error.message)"))
            }
        }
    }
}

@available(*, unavailable)
extension OutcomeQuestions: Sendable {}

extension Problem {
    /// Reads the refusal of another node.
    fileprivate init(refusal response: HTTPResponse) {
        self.init(.nodeBehind, "a snapshot node answered with status \(response.status)")
        // Any other status comes from no snapshot node, and must not become that of this node's own answer.
        guard PeerAnswer.refusals.contains(response.status) else { return }
        status = response.status
        let refusal = PeerRefusal(response.body)
        code = refusal.code ?? code
        detail = refusal.detail ?? detail
        first = refusal.first
    }
}
