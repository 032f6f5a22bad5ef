import ReelCore
import ReelLog
import ReelNet
import ReelNode

/// The answer to a request for a range of a stream: the events after a seq, or a whole block. If there are no events
/// after the seq yet, it can wait for some (a long poll). On its loop only.
final class EventsRange: StreamWaiter, EventReader {
    /// The number of seqs per block.
    static let blockSeqs: Int64 = 1_024
    /// The approximate maximum size in bytes of an answer that is not a block. Its member `to` says how far it goes.
    private static let answerBytes = 4 << 20

    private(set) var cursor: StreamCursor
    var readState = ReadState.idle
    let account: ReadAccount? = nil
    private let gateway: GatewayLoop
    private let exchange: HTTPExchange
    private let rights: Access
    /// The unit of a long poll among the connections of its subject.
    var place: PayerShares.Unit?
    private var reply: EventRangeResponse
    /// The last seq of the range that is answered.
    private var end: Seq = .none
    /// The maximum number of events and bytes of the whole answer.
    private var answerLimits = (events: Int.max, bytes: Int.max)
    /// True while the client has not taken the piece that was sent last.
    private var isSending = false
    /// The timer that ends the wait of a long poll; nil: the request does not wait.
    private var timer: LoopTimer?

    /// Creates an answer. `filter` is the filter for events; nil: all events.
    init(
        _ gateway: GatewayLoop,
        _ stream: StreamName,
        through filter: EventFilter? = nil,
        hasOutcomes: Bool = false,
        _ exchange: HTTPExchange,
        _ access: Access
    ) {
        rights = access
        self.gateway = gateway
        self.exchange = exchange
        let partition = stream.partition(of: gateway.context.partitions)
        let options = ReadOptions(filter, hasOutcomes: hasOutcomes)
        cursor = StreamCursor(stream, in: partition, after: .none, options: options)
        reply = EventRangeResponse(
            EventRangeBody(from: 0, head: .none),
            of: stream,
            epoch: gateway.context.epoch,
            partition: partition,
            through: exchange
        )
    }

    var stream: StreamName { cursor.stream }
    var partition: Int { cursor.partition }

    /// Begins to answer with the events after a seq, up to `end`.
    private func begin(after: Seq, to end: Seq) {
        self.end = end
        cursor = StreamCursor(stream, in: partition, after: after, options: cursor.options)
        gateway.reads.read(self)
    }

    /// Answers with the events after a seq, up to the head or the limit. If there are none yet, it waits for some.
    ///
    /// - Parameters:
    ///   - after: The last seq that the client holds; −1: none.
    ///   - epoch: The epoch of `after`; nil if the client names none.
    ///   - limit: The maximum number of events.
    ///   - waitS: The maximum wait for an event in seconds; 0: it does not wait.
    func answer(after: Seq, epoch: Epoch?, limit: Int, waitS: Int64) {
        let wanted = ReadRequest(stream: stream, epoch: epoch, after: after)
        gateway.admit(wanted) { [self] failure in
            guard exchange.isOpen else { return }
            if let failure { return refuse(failure) }
            let head = gateway.rings[partition].head
            // A client that has all readable events is told why no more can be read.
            if after == head, let error = gateway.health.standstill(of: partition) { return failed(error) }
            reply.answer = EventRangeBody(from: after + 1, head: head)
            answerLimits = (limit, Self.answerBytes)
            if waitS > 0 {
                timer = exchange.loop.timer(after: .seconds(waitS)) { [self] in stopWaiting() }
                exchange.broken = { [self] in leave() }
            }
            begin(after: after, to: head)
        }
    }

    /// Answers with a block if it is complete. A block never changes.
    func answer(block: Int64, epoch: Epoch) {
        let seqs = block * Self.blockSeqs...(block + 1) * Self.blockSeqs - 1
        let head = gateway.rings[partition].head
        let wanted = ReadRequest(stream: stream, epoch: epoch, lowest: seqs.lowerBound, highest: .none)
        gateway.admit(wanted) { [self] failure in
            guard exchange.isOpen else { return }
            if let failure { return refuse(failure) }
            guard seqs.upperBound <= head else {
                var problem = Problem(
                    .notFound,
                    "block \(block) ends at \(seqs.upperBound), the partition is read to \(head)"
                )
                problem.head = head
                return exchange.respond(problem.response)
            }
            let etag = "\"\(epoch):\(stream):\(block)\""
            let held = exchange.request.held(etag: etag)
            // A shared cache may give a `public` answer to any client, with a token or without.
            let audience = gateway.context.settings.node.tokens == nil ? "public" : "private"
            let headers: HTTPHeaders = [
                "cache-control": "\(audience), max-age=31536000, immutable", "etag": held ?? etag,
            ]
            if held != nil {
                return exchange.respond(HTTPResponse(status: 304, headers: headers))
            }
            reply = EventRangeResponse(
                EventRangeBody(from: seqs.lowerBound, head: seqs.upperBound),
                of: stream,
                epoch: epoch,
                partition: partition,
                headers: headers,
                isWhole: true,
                through: exchange
            )
            begin(after: seqs.lowerBound - 1, to: seqs.upperBound)
        }
    }

    // MARK: EventReader

    var access: Access? { rights }
    var isOver: Bool { !exchange.isOpen }
    var hasRoom: Bool { !isSending }
    let waitsOutOverload = false
    var limits: (bytes: Int, events: Int) { (EventRangeResponse.pieceBytes, answerLimits.events - reply.answer.count) }

    /// The last seq of the range, or the last one that was read once the answer has reached a limit.
    var last: Seq {
        let isFull = reply.answer.count >= answerLimits.events || reply.answer.byteCount >= answerLimits.bytes
        return isFull ? cursor.next - 1 : end
    }

    func received(_ piece: EventRange) {
        switch cursor.take(piece, provenEvery: 1) {
        case .send(let range):
            isSending = true
            reply.append(range) { [self] in
                isSending = false
                gateway.reads.roomFreed(self)
                // It may have caught up meanwhile.
                gateway.reads.read(self)
            }
            // The answer to HEAD has ended, and calls nobody.
            if !exchange.isOpen { leave() }
        case .keep: break
        case .refuse(let error): failed(error)
        }
    }

    /// Ends the answer, or waits for events if there are none.
    func caughtUp() {
        guard exchange.isOpen, !isSending else { return }
        guard reply.answer.count == 0, timer != nil, !gateway.health.isLeaving else { return finish() }
        // Events that arrived after the request was admitted have not woken this waiter.
        if gateway.rings[partition].head > end { return moved() }
        if let error = gateway.health.stop(of: partition) { return failed(error) }
        gateway.fanOut.join(self)
    }

    private func finish() {
        leave()
        reply.end()
    }

    private func leave() {
        gateway.fanOut.leave(self)
        timer?.cancel()
        timer = nil
        place = nil
    }

    private func refuse(_ failure: ServerFrame.Failure) {
        reply.fail(Problem(failure))
    }

    // MARK: Waiting

    /// Answers with the proven range: now, or once the read under way has ended.
    private func stopWaiting() {
        timer = nil
        if gateway.fanOut.waiters.holds(self) { moved() }
    }

    func moved() {
        gateway.fanOut.leave(self)
        end = gateway.rings[partition].head
        reply.answer.head = end
        gateway.reads.read(self)
    }

    func failed(_ error: ReelError) {
        leave()
        refuse(gateway.failure(error, stream))
    }

    func tick(nowMs: Int64) {
        if rights.hasExpired(nowMs: gateway.loop.wallMs) {
            failed(.tokenExpired)
        }
    }

    func askToLeave(afterMs: Int64) {
        timer?.cancel()
        stopWaiting()
    }
}
