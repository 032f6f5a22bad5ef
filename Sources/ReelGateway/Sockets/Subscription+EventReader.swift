import ReelCore
import ReelNode

// Subscriptions that catch up.
extension GatewayLoop {
    /// Starts a new subscription: in its turns, or at once if nothing is missing.
    func begin(_ entry: Subscription<SocketClient>) {
        if entry.next <= rings[entry.partition].head { reads.read(entry) } else { entry.caughtUp() }
    }
}

// A subscription gets the events up to the head, at its client's pace. Then it becomes live, and the tail feeds it.
extension Subscription: EventReader where Client == SocketClient {
    private var gateway: GatewayLoop { client.gateway }

    var account: ReadAccount? { client.reads }
    var access: Access? { client.access }
    var last: Seq { gateway.rings[partition].head }
    var hasRoom: Bool { client.hasRoom }

    var limits: (bytes: Int, events: Int) { (gateway.fanOut.subscriptions.bodyLimit(stream), .max) }

    func waitForRoom() { client.wait(self) }

    func received(_ piece: EventRange) {
        switch take(piece) {
        case .send(let range): client.send(range.frame(stream: stream))
        case .keep: break
        case .refuse(let error): failed(error)
        }
    }

    func caughtUp() {
        guard !isOver, !isLive else { return }
        let head = last
        if let error = gateway.health.stop(of: partition) { return failed(error) }
        if hasOutcomes { return proveHead(head) }
        gateway.fanOut.becomeLive(self, head: head)
    }

    func failed(_ error: ReelError) { gateway.fanOut.end(self, error) }

    /// Sends a frame that proves the head, if the subscription owes one.
    private func proveHead(_ head: Seq) {
        guard owesProof, proven < head else { return }
        owesProof = false
        client.send(EventRange(from: proven + 1, to: head).frame(stream: stream))
        sent(to: head)
    }
}

// A subscription with outcomes never becomes live. It reads on whenever its stream has new events, and proves the head
// about once a second.
extension Subscription: StreamWaiter where Client == SocketClient {
    func moved() { gateway.reads.read(self) }

    func tick(nowMs: Int64) {
        owesProof = true
        gateway.reads.read(self)
    }

    /// Does nothing: `SocketClient.askToLeave` tells the client.
    func askToLeave(afterMs: Int64) {}
}
