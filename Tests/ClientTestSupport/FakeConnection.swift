import ReelCore
import ReelNet

@testable import ReelClient

/// A client's connection, as its node sees it.
final class FakeConnection: TransportConnection, @unchecked Sendable {
    let network: FakeNetwork
    let node: String
    var receive: (@Sendable (TransportEvent) -> Void)?
    /// The last proven seq of each subscription.
    var proven: [StreamName: Seq] = [:]
    private var token: String?

    init(_ network: FakeNetwork, _ node: String, _ receive: @escaping @Sendable (TransportEvent) -> Void) {
        self.network = network
        self.node = node
        self.receive = receive
    }

    func send(_ text: [UInt8]) {
        network.loop.execute { [self] in
            guard receive != nil, let frame = text.withUnsafeBytes({ try? ClientFrame($0) }) else { return }
            if network.lies[node]?(self, frame) == true { return }
            network.asSeen(by: node) { handle(frame) }
        }
    }

    func ping(_ number: Int) {
        network.loop.execute { if !self.network.isSlow { self.receive?(.pong(number)) } }
    }

    func close() {
        receive = nil
        network.connections.removeAll { $0 === self }
    }

    func end(_ reason: String) {
        let receive = receive
        close()
        receive?(.closed(reason))
    }

    func say(_ body: ServerFrame.Body, ref: [UInt8]? = nil) {
        receive?(.text(ServerFrame(body, ref: ref).encoded()))
    }

    func push() {
        if !network.isSilent { push(upTo: network.head) }
    }

    func push(upTo last: Seq) {
        network.asSeen(by: node) {
            for (stream, after) in proven where after < last {
                proven[stream] = last
                say(.events(network.events(stream, after + 1, last)))
            }
        }
    }

    private func handle(_ frame: ClientFrame) {
        switch frame.body {
        case .hello(let hello):
            network.greeted.append(node)
            network.takesNodes.append(hello.takesNodes)
            welcome(hello.token)
        case .subscribe(let subscribe):
            network.subscribes.append(subscribe)
            var after = network.head
            if case .after(let seq) = subscribe.position { after = seq }
            var refusal =
                after + 1 < network.first
                ? ReelError(.truncated, "the log begins at \(network.first)") : network.refusal
            if let token, network.strangers.contains(token) { refusal = ReelError(.forbidden, "it is not for you") }
            if network.forbidden.contains(subscribe.stream) { refusal = ReelError(.forbidden, "it is not for you") }
            if let most = network.subscriptionsTaken, proven[subscribe.stream] == nil, proven.count >= most {
                refusal = ReelError(.limit, "found more than \(most) subscriptions of one connection")
            }
            if let refusal {
                return say(.error(ServerFrame.Failure(refusal, stream: subscribe.stream)), ref: frame.ref)
            }
            say(
                .subscribed(
                    .init(
                        stream: subscribe.stream,
                        epoch: network.epoch,
                        partition: 0,
                        first: network.head < 0 ? -1 : 0,
                        head: network.head,
                        after: after
                    )
                ),
                ref: frame.ref
            )
            proven[subscribe.stream] = after
            push()
        case .subscribeAll(let subscribes):
            network.batches.append(subscribes.count)
            for subscribe in subscribes { handle(ClientFrame(.subscribe(subscribe), ref: frame.ref)) }
        case .unsubscribe(let stream): proven[stream] = nil
        case .renew(let token): welcome(token, isRenewal: true)
        case .fetch(let fetch):
            network.fetches.append(fetch.ranges)
            guard !network.dropsFetches else { return }
            for range in fetch.ranges {
                say(.events(network.events(fetch.stream, range.lowerBound, range.upperBound)), ref: frame.ref)
            }
        // A node at an ended epoch accepts no publish.
        case .publish(let publish): if !network.lagging.contains(node) { handle(publish, frame.ref) }
        }
    }

    /// Answers a `hello` or a `renew`. A refused renewal does not end the connection.
    private func welcome(_ token: String?, isRenewal: Bool = false) {
        network.said.append(token)
        if let tokens = network.tokens, !tokens.contains(token ?? "") {
            say(.error(ServerFrame.Failure(ReelError(.unauthorized, "the token is not valid"))))
            if !isRenewal { end("closed with 4401") }
            return
        }
        self.token = token
        say(
            .welcome(
                .init(
                    node: node,
                    epoch: network.epoch,
                    number: network.number,
                    deployment: network.deployment,
                    partitions: network.partitions,
                    limits: .init(
                        frame: network.frameBytes,
                        event: 256 << 10,
                        batch: 50,
                        subscriptions: network.subscriptionsMax,
                        subscribe: network.subscribeStreams,
                        fetch: 100_000
                    ),
                    pingS: 20,
                    tokenS: network.tokenS ?? network.tokens.map { _ in 365 * 86_400 },
                    nodes: network.named
                )
            )
        )
    }

    /// The author name that a node with keys gives to events.
    private var author: String? {
        network.tokens == nil ? nil : token.flatMap(TokenSubject.read) ?? "somebody"
    }

    private func handle(_ publish: ClientFrame.Publish, _ ref: [UInt8]?) {
        if network.losesPublishes { return end("lost") }
        for value in network.late { network.append(publish.stream, value) }
        network.late = []
        if let token, network.readers.contains(token) {
            return refuse(publish, ref, ReelError(.forbidden, "the token does not allow it"))
        }
        if let nack = network.nack { return refuse(publish, ref, nack) }
        func breaks() -> Bool { Int.random(in: 0..<100, using: &network.random) < network.breaksPercent }
        var acks: [ServerFrame.Acked] = []
        for bytes in publish.events {
            if breaks() { return end("broken before") }
            var intake = EventIntake(limit: 256 << 10)
            var value: [UInt8] = []
            let stamp = EventIntake.Stamp(by: author, atMs: 7, base: network.head)
            guard (try? bytes.withUnsafeBytes { try intake.take($0, stamp: stamp, into: &value) }) != nil else {
                return
            }
            network.append(publish.stream, value)
            acks.append(.init(site: intake.event.site, op: intake.event.op, seq: network.head))
            if breaks() {
                end("broken behind")
                return network.pushAll()
            }
        }
        guard !network.dropsAcks else { return network.pushAll() }
        say(.ack(.init(stream: publish.stream, epoch: network.epoch, acks: acks)))
        network.pushAll()
    }

    private func refuse(_ publish: ClientFrame.Publish, _ ref: [UInt8]?, _ error: ReelError) {
        for bytes in publish.events {
            var intake = EventIntake(limit: 256 << 10)
            var value: [UInt8] = []
            let stamp = EventIntake.Stamp(by: nil, atMs: 7, base: network.head)
            guard (try? bytes.withUnsafeBytes { try intake.take($0, stamp: stamp, into: &value) }) != nil else {
                return
            }
            let (site, op) = (intake.event.site, intake.event.op)
            say(.nack(.init(stream: publish.stream, site: site, op: op, error: error)), ref: ref)
        }
    }
}

final class FakeRequest: TransportHandle, @unchecked Sendable {
    var isCancelled = false
    var timer: LoopTimer?

    func cancel() {
        isCancelled = true
        timer?.cancel()
        timer = nil
    }
}
