import ReelCore
import ReelNode

// Subscriptions that get each event with its outcome.
extension GatewayLoop {
    /// Registers the subscription for new events until the subscription ends.
    func follow(_ entry: Subscription<SocketClient>) {
        let follower = OutcomeFollower(entry, of: self)
        guard fanOut.waiters.add(follower) else { return }
        entry.cursor.options?.whenOver = { [unowned self] in _ = fanOut.waiters.remove(follower) }
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

    func moved() { gateway.reads.read(entry) }

    func tick(nowMs: Int64) {
        entry.owesProof = true
        gateway.reads.read(entry)
    }

    // `GatewayLoop.fence` and `SocketClient.askToLeave` tell the client.
    func failed(_ error: ReelError) {}
    func askToLeave(afterMs: Int64) {}
}

@available(*, unavailable)
extension OutcomeFollower: Sendable {}
