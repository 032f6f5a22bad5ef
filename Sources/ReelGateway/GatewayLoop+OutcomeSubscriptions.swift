import ReelCore
import ReelNode

// Subscriptions that get each event with its outcome.
extension GatewayLoop {
    /// The largest number of events in one question for outcomes.
    static let outcomesAtOnce = 1_000

    /// Returns how many bytes of events to read, so that they fit into a frame of `limit` bytes once each event has its
    /// outcome. An event takes 100 bytes or more, an outcome at most 33.
    static func bytesWithOutcomes(_ limit: Int) -> Int { max(1, limit / 4 * 3) }

    /// Registers the subscription for new events until the subscription ends.
    func follow(_ entry: Subscription<SocketClient>) {
        let follower = OutcomeFollower(entry, of: self)
        guard streamWaiters.add(follower) else { return }
        entry.whenOver { [unowned self] in _ = streamWaiters.remove(follower) }
    }

    /// Asks for the outcomes of the events and sends both. Later events of the subscription wait until then.
    func sendWithOutcomes(_ chunk: EventRange, to entry: Subscription<SocketClient>) {
        let client = entry.client
        guard let access = client.access else { return }
        client.outcomeQuestions += 1
        addOutcomes(to: chunk, of: entry.stream, for: access) { [self] result in
            client.outcomeQuestions -= 1
            readMore(client)
            guard !entry.isOver else { return }
            switch result {
            case .success(let chunk): send(chunk, to: entry)
            case .failure(let problem): return end(entry, ReelError(problem.code, problem.detail))
            }
            resume(entry)
        }
    }

    /// Sends a frame that proves the head, if the subscription owes one. Called when all events up to the head are
    /// sent.
    func proveHead(_ entry: Subscription<SocketClient>) {
        let head = rings[entry.partition].head
        guard entry.owesProof, entry.proven < head else { return }
        entry.owesProof = false
        entry.client.send(EventRange(from: entry.proven + 1, to: head).frame(stream: entry.stream))
        entry.sent(to: head)
    }
}

/// Reads on for a subscription with outcomes whenever its stream has new events, and proves the head about once a
/// second.
private final class OutcomeFollower: StreamWaiter {
    private let entry: Subscription<SocketClient>
    private unowned let gateway: GatewayLoop

    init(_ entry: Subscription<SocketClient>, of gateway: GatewayLoop) {
        self.entry = entry
        self.gateway = gateway
    }

    var stream: StreamName { entry.stream }
    var partition: Int { entry.partition }

    func moved() { gateway.catchUp(entry) }

    func tick(nowMs: Int64) {
        entry.owesProof = true
        gateway.catchUp(entry)
    }

    // `GatewayLoop.fence` and `SocketClient.askToLeave` tell the client.
    func failed(_ error: ReelError) {}
    func askToLeave(afterMs: Int64) {}
}

@available(*, unavailable)
extension OutcomeFollower: Sendable {}
