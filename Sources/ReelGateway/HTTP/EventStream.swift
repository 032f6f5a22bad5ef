import ReelCore
import ReelLog
import ReelNet
import ReelNode

/// Server-sent events: the events of a stream after a seq, and then new ones, as messages that each prove a range. The
/// `id` of a message is `EPOCH:SEQ`. A client that returns with the last id continues there.
///
/// It reads at its client's pace. It ends when the client has to send a new request: with a `problem` message that says
/// why, or without a message if the node ends. On its loop only.
final class EventStream: StreamWaiter, EventReader {
    private(set) var cursor: StreamCursor
    var readState = ReadState.idle
    let account: ReadAccount? = nil
    private let gateway: GatewayLoop
    private let exchange: HTTPExchange
    private let rights: Access
    /// The unit of this connection among the connections of its subject.
    private let place: PayerShares.Unit?
    /// The maximum number of events per message.
    private let limit: Int
    /// True if the head has to be proven although there is no event to send.
    private var owesProof = true
    /// True until the client was told its position for the first time.
    private var isFirst = true
    private var saidMs: Int64
    private var leaveAtMs: Int64?

    private init(_ gateway: GatewayLoop, from cursor: StreamCursor, limit: Int, _ client: Client) {
        self.gateway = gateway
        self.cursor = cursor
        self.limit = limit
        exchange = client.exchange
        rights = client.access
        place = client.place
        saidMs = gateway.nowMs
    }

    var stream: StreamName { cursor.stream }
    var partition: Int { cursor.partition }

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
        let wanted = ReadRequest(stream: stream, epoch: epoch, after: after)
        gateway.admit(wanted) { failure in
            guard client.exchange.isOpen else { return }
            if let failure { return client.exchange.respond(Problem(failure).response) }
            guard !gateway.health.isLeaving else {
                return client.exchange.respond(Problem(.overloaded, "this node ends").response)
            }
            let options = ReadOptions(filter, hasOutcomes: hasOutcomes)
            let partition = stream.partition(of: gateway.context.partitions)
            let cursor = StreamCursor(stream, in: partition, after: after, options: options)
            EventStream(gateway, from: cursor, limit: limit, client).begin()
        }
    }

    private func begin() {
        exchange.drained = { [unowned self] in gateway.reads.roomFreed(self) }
        exchange.broken = { [unowned self] in gateway.fanOut.leave(self) }
        exchange.start(
            status: 200,
            // The last field is for nginx, which would buffer messages.
            headers: [
                "content-type": "text/event-stream", "cache-control": "no-store", "x-accel-buffering": "no",
            ]
        )
        // The answer to HEAD has no body.
        guard exchange.isOpen else { return }
        gateway.fanOut.join(self)
        gateway.reads.read(self)
    }

    // MARK: StreamWaiter

    func moved() { gateway.reads.read(self) }

    func failed(_ error: ReelError) {
        guard exchange.isOpen else { return }
        let problem = Problem(gateway.failure(error, stream))
        gateway.context.meters.failed(error.code)
        exchange.write(Array("event: problem\ndata: ".utf8) + problem.body + Array("\n\n".utf8))
        end()
    }

    func tick(nowMs: Int64) {
        if rights.hasExpired(nowMs: gateway.loop.wallMs) {
            return failed(.tokenExpired)
        }
        if let leaveAtMs, nowMs >= leaveAtMs { return end() }
        guard exchange.pendingBytes == 0 else { return }
        owesProof = cursor.proven < last
        gateway.reads.read(self)
        if nowMs >= saidMs + gateway.context.settings.pingMs { say(Array(":\n\n".utf8)) }
    }

    func askToLeave(afterMs: Int64) {
        leaveAtMs = gateway.nowMs + afterMs
    }

    private func end() {
        gateway.fanOut.leave(self)
        exchange.end()
    }

    // MARK: EventReader

    var access: Access? { rights }
    var isOver: Bool { !exchange.isOpen }
    var last: Seq { gateway.rings[partition].head }
    var limits: (bytes: Int, events: Int) { (gateway.fanOut.subscriptions.bodyLimit(stream), limit) }
    var hasRoom: Bool { exchange.isOpen && exchange.pendingBytes <= gateway.context.settings.paceBytes }

    func received(_ piece: EventRange) {
        switch cursor.take(piece) {
        case .send(let range):
            var body = EventRangeBody(from: range.from, head: last)
            body.append(range)
            tell(body)
        case .keep: break
        case .refuse(let error): failed(error)
        }
    }

    func caughtUp() {
        if let error = gateway.health.stop(of: partition) { return failed(error) }
        guard owesProof else { return }
        owesProof = false
        let seen = cursor.next - 1
        guard isFirst || cursor.proven < seen else { return }
        let proof = EventRangeBody(from: cursor.proven + 1, to: seen, head: last)
        cursor.prove(to: seen)
        tell(proof)
    }

    // MARK: Telling

    private func tell(_ answer: EventRangeBody) {
        isFirst = false
        let (epoch, hasOutcomes) = (gateway.context.epoch, cursor.hasOutcomes)
        let message = gateway.fanOut.waiters.message(stream, cursor.filter, hasOutcomes: hasOutcomes, answer) {
            Array("id: \(epoch):\(answer.to)\ndata: ".utf8) + answer.bytes(stream, epoch, partition)
                + Array("\n\n".utf8)
        }
        say(message)
        gateway.context.meters.framesPushed.add()
        gateway.context.meters.bytesPushed.add(message.count)
    }

    private func say(_ message: [UInt8]) {
        saidMs = gateway.nowMs
        exchange.write(message)
    }
}

@available(*, unavailable)
extension EventStream: Sendable {}
