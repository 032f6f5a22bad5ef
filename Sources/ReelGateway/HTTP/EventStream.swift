import ReelCore
import ReelLog
import ReelNet
import ReelNode

/// Server-sent events: the events of a stream after a seq, and then new ones, as messages that each prove a range. The
/// `id` of a message is `EPOCH:SEQ`. A client that returns with the last id continues there.
///
/// It reads at its client's pace. It ends when the client has to send a new request: with a `problem` message that says
/// why, or without a message if the node ends. On its loop only.
final class EventStream: StreamWaiter {
    let stream: StreamName
    let partition: Int
    private let gateway: GatewayLoop
    private let exchange: HTTPExchange
    private let access: Access
    /// The unit of this connection among the connections of its subject.
    private let place: PayerShares.Unit?
    /// The filter for events; nil: all events.
    private let filter: EventFilter?
    /// True if each event is sent with its outcome.
    private let hasOutcomes: Bool
    /// The maximum number of events per message.
    private let limit: Int
    /// The last seq that was proven to the client.
    private var proven: Seq
    /// The next seq to look at. It is greater than `proven + 1` after a range without events.
    private var next: Seq
    private var isReading = false
    /// True if the head has to be proven although there is no event to send.
    private var owesProof = true
    /// True until the client was told its position for the first time.
    private var isFirst = true
    private var saidMs: Int64
    private var leaveAtMs: Int64?

    private init(
        _ gateway: GatewayLoop,
        _ stream: StreamName,
        through filter: EventFilter?,
        hasOutcomes: Bool,
        after: Seq,
        limit: Int,
        _ client: Client
    ) {
        self.gateway = gateway
        self.stream = stream
        self.filter = filter
        self.hasOutcomes = hasOutcomes
        self.limit = limit
        exchange = client.exchange
        access = client.access
        place = client.place
        partition = stream.partition(of: gateway.share.partitions)
        proven = after
        next = after + 1
        saidMs = gateway.nowMs
    }

    /// The client of an event stream.
    struct Client {
        let exchange: HTTPExchange
        let access: Access
        let place: PayerShares.Unit?
    }

    /// Answers with the events after a seq, and then with new ones.
    ///
    /// - Parameters:
    ///   - gateway: The loop.
    ///   - stream: The stream.
    ///   - filter: The filter for events; nil: all events.
    ///   - hasOutcomes: True if each event is sent with its outcome.
    ///   - after: The last seq that the client holds; −1: none.
    ///   - epoch: The epoch of `after`; nil if the client names none.
    ///   - limit: The maximum number of events per message.
    ///   - client: The request to answer.
    static func begin(
        _ gateway: GatewayLoop,
        _ stream: StreamName,
        through filter: EventFilter? = nil,
        hasOutcomes: Bool = false,
        after: Seq,
        epoch: Epoch?,
        limit: Int,
        for client: Client
    ) {
        gateway.admit(stream, epoch: epoch, lowest: after + 1, highest: after) { failure in
            guard client.exchange.isOpen else { return }
            if let failure { return client.exchange.respond(Problem(failure).response) }
            guard !gateway.share.isLeaving else {
                return client.exchange.respond(Problem(.overloaded, "this node ends").response)
            }
            EventStream(
                gateway,
                stream,
                through: filter,
                hasOutcomes: hasOutcomes,
                after: after,
                limit: limit,
                client
            ).begin()
        }
    }

    private func begin() {
        exchange.drained = { [unowned self] in sendMore() }
        exchange.broken = { [unowned self] in gateway.leave(self) }
        exchange.start(
            status: 200,
            // The last field is for nginx, which would buffer messages.
            headers: [
                "content-type": "text/event-stream", "cache-control": "no-store", "x-accel-buffering": "no",
            ]
        )
        // The answer to HEAD has no body.
        guard exchange.isOpen else { return }
        gateway.join(self)
        sendMore()
    }

    // MARK: Follower

    func moved() { sendMore() }

    func failed(_ error: ReelError) {
        guard exchange.isOpen else { return }
        let problem = Problem(gateway.failure(error, stream))
        gateway.share.meters.failed(error.code)
        exchange.write(Array("event: problem\ndata: ".utf8) + problem.body + Array("\n\n".utf8))
        end()
    }

    func tick(nowMs: Int64) {
        if access.hasExpired(nowMs: gateway.loop.wallMs) {
            return failed(.tokenExpired)
        }
        if let leaveAtMs, nowMs >= leaveAtMs { return end() }
        guard exchange.pendingBytes == 0 else { return }
        owesProof = proven < gateway.rings[partition].head
        sendMore()
        if nowMs >= saidMs + gateway.share.settings.pingMs { say(Array(":\n\n".utf8)) }
    }

    func askToLeave(afterMs: Int64) {
        leaveAtMs = gateway.nowMs + afterMs
    }

    private func end() {
        gateway.leave(self)
        exchange.end()
    }

    // MARK: Telling

    /// Sends the events that there are, while the client reads them. It is called again when there are more.
    private func sendMore() {
        while exchange.isOpen, !isReading, exchange.pendingBytes <= gateway.share.settings.paceBytes {
            guard next <= gateway.rings[partition].head else { return caughtUp() }
            isReading = true
            var isDone = false
            gateway.read(
                stream,
                through: filter,
                partition: partition,
                from: next,
                to: gateway.rings[partition].head,
                bytes: gateway.subscriptions.bodyLimit(stream),
                events: limit,
                for: access
            ) { [self] result in
                isReading = false
                switch result {
                case .success(let chunk) where hasOutcomes && chunk.count > 0: return tellWithOutcomes(chunk)
                case .success(let chunk): tell(chunk)
                case .failure(let error): failed(gateway.reason(error, stream))
                }
                if isDone { return sendMore() }
                // The filter takes time, and the client's pace does not limit it: the loop does other work in between.
                guard filter != nil, next <= gateway.rings[partition].head else { return }
                isReading = true
                gateway.loop.bound { [self] in
                    isReading = false
                    sendMore()
                }(())
            }
            isDone = true
        }
    }

    /// Sends the events when their outcomes are known. Later events wait in order.
    private func tellWithOutcomes(_ chunk: EventRange) {
        isReading = true
        gateway.addOutcomes(to: chunk, of: stream, for: access) { [self] result in
            isReading = false
            switch result {
            case .success(let chunk): tell(chunk)
            case .failure(let problem): return failed(ReelError(problem.code, problem.detail))
            }
            gateway.loop.bound { [self] in sendMore() }(())
        }
    }

    private func caughtUp() {
        if let error = gateway.share.stop(of: partition) { return failed(error) }
        guard owesProof else { return }
        owesProof = false
        guard isFirst || proven < next - 1 else { return }
        tell(EventRangeBody(from: proven + 1, to: next - 1, head: gateway.rings[partition].head))
    }

    private func tell(_ chunk: EventRange) {
        next = chunk.to + 1
        guard chunk.count > 0 || chunk.to - proven >= GatewayLoop.provenEvery else { return }
        var answer = EventRangeBody(from: proven + 1, head: gateway.rings[partition].head)
        answer.append(chunk)
        tell(answer)
    }

    private func tell(_ answer: EventRangeBody) {
        (proven, isFirst) = (answer.to, false)
        let epoch = gateway.share.epoch
        let message = gateway.streamWaiters.message(stream, filter, hasOutcomes: hasOutcomes, answer) {
            Array("id: \(epoch):\(answer.to)\ndata: ".utf8) + answer.bytes(stream, epoch, partition)
                + Array("\n\n".utf8)
        }
        say(message)
        gateway.share.meters.framesPushed.add()
        gateway.share.meters.bytesPushed.add(message.count)
    }

    private func say(_ message: [UInt8]) {
        saidMs = gateway.nowMs
        exchange.write(message)
    }
}

@available(*, unavailable)
extension EventStream: Sendable {}
