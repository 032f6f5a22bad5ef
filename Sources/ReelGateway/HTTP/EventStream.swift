import ReelCore
import ReelLog
import ReelNet
import ReelNode

/// Server-sent events: what a stream has behind a seq, and then what comes, as messages that each prove a range. Their
/// `id` is `EPOCH:SEQ`; who comes back with the last one goes on from there.
///
/// It reads at its client's pace, and ends when the client has to ask anew: with a message `problem` that says why, or,
/// where the node ends, without a word.
final class EventStream: StreamWaiter {
    let stream: StreamName
    let partition: Int
    private let gateway: GatewayLoop
    private let exchange: HTTPExchange
    private let access: Access
    /// Its place among the connections of its subject.
    private let place: PayerShares.Unit?
    /// What is wanted of the stream; nil: everything.
    private let filter: EventFilter?
    /// Each event comes with what became of it.
    private let hasOutcomes: Bool
    /// Events of a message at most.
    private let limit: Int
    /// The last seq that the client was told to hold.
    private var proven: Seq
    /// The next seq to look at; ahead of `proven + 1` where a range without events was passed.
    private var next: Seq
    private var isReading = false
    /// What is proven is said though there is no event to tell.
    private var owesProof = true
    /// Nothing was said of where the client is.
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

    /// Who asks.
    struct Client {
        let exchange: HTTPExchange
        let access: Access
        let place: PayerShares.Unit?
    }

    /// Answers with what follows a seq and what comes. A message has so many events at most.
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
        exchange.drained = { [unowned self] in goOn() }
        exchange.broken = { [unowned self] in gateway.leave(self) }
        exchange.start(
            status: 200,
            // The last one is for nginx, which would keep messages back.
            headers: [
                "content-type": "text/event-stream", "cache-control": "no-store", "x-accel-buffering": "no",
            ]
        )
        // To HEAD the head was all.
        guard exchange.isOpen else { return }
        gateway.join(self)
        goOn()
    }

    // MARK: Follower

    func moved() { goOn() }

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
        goOn()
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

    /// Tells what there is, as far as the client reads it.
    private func goOn() {
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
                if isDone { return goOn() }
                // What is left out costs time and is not held up by the client: others come in between.
                guard filter != nil, next <= gateway.rings[partition].head else { return }
                isReading = true
                gateway.loop.bound { [self] in
                    isReading = false
                    goOn()
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
            gateway.loop.bound { [self] in goOn() }(())
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
