import ReelCore
import ReelLog
import ReelNet
import ReelNode

/// The answer to a request for a range of a stream: the events after a seq, or a whole block. If there are no events
/// after the seq yet, it can wait for some (a long poll). On its loop only.
final class EventsRange: StreamWaiter {
    /// The number of seqs per block.
    static let blockSeqs: Int64 = 1_024
    /// The approximate maximum size in bytes of an answer that is not a block. Its member `to` says how far it goes.
    private static let answerBytes = 4 << 20

    private let gateway: GatewayLoop
    let stream: StreamName
    let partition: Int
    private let exchange: HTTPExchange
    private let access: Access
    /// The unit of a long poll among the connections of its subject.
    var place: PayerShares.Unit?
    private let filter: EventFilter?
    /// True if each event is sent with its outcome.
    private let hasOutcomes: Bool
    private var reply: EventRangeResponse
    /// The last seq of the range that is answered.
    private var last: Seq = .none
    /// The maximum number of events and bytes of the answer.
    private var limits = (events: Int.max, bytes: Int.max)
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
        self.access = access
        self.gateway = gateway
        self.stream = stream
        self.filter = filter
        self.hasOutcomes = hasOutcomes
        self.exchange = exchange
        partition = stream.partition(of: gateway.share.partitions)
        reply = EventRangeResponse(
            EventRangeBody(from: 0, head: .none),
            of: stream,
            epoch: gateway.share.epoch,
            partition: partition,
            through: exchange
        )
    }

    /// Answers with the events after a seq, up to the head or the limit. If there are none yet, it waits for some.
    ///
    /// - Parameters:
    ///   - after: The last seq that the client holds; −1: none.
    ///   - epoch: The epoch of `after`; nil if the client names none.
    ///   - limit: The maximum number of events.
    ///   - waitS: The maximum wait for an event in seconds; 0: it does not wait.
    func answer(after: Seq, epoch: Epoch?, limit: Int, waitS: Int64) {
        gateway.admit(stream, epoch: epoch, lowest: after + 1, highest: after) { [self] failure in
            if let failure { return refuse(failure) }
            last = gateway.rings[partition].head
            // A client that has all readable events is told why no more can be read.
            if after == last, let error = gateway.share.standstill(of: partition) { return failed(error) }
            reply.answer = EventRangeBody(from: after + 1, head: last)
            limits = (limit, Self.answerBytes)
            if waitS > 0 {
                timer = exchange.loop.timer(after: .seconds(waitS)) { [self] in stopWaiting() }
                exchange.broken = { [self] in end() }
            }
            collect()
        }
    }

    /// Answers with a block if it is complete. A block never changes.
    func answer(block: Int64, epoch: Epoch) {
        let seqs = block * Self.blockSeqs...(block + 1) * Self.blockSeqs - 1
        let head = gateway.rings[partition].head
        gateway.admit(stream, epoch: epoch, lowest: seqs.lowerBound, highest: .none) { [self] failure in
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
            let audience = gateway.share.settings.node.tokens == nil ? "public" : "private"
            let headers: HTTPHeaders = [
                "cache-control": "\(audience), max-age=31536000, immutable", "etag": held ?? etag,
            ]
            if held != nil {
                return exchange.respond(HTTPResponse(status: 304, headers: headers))
            }
            last = seqs.upperBound
            reply = EventRangeResponse(
                EventRangeBody(from: seqs.lowerBound, head: last),
                of: stream,
                epoch: epoch,
                partition: partition,
                headers: headers,
                isWhole: true,
                through: exchange
            )
            collect()
        }
    }

    // MARK: Collecting

    private func collect() {
        guard exchange.isOpen else { return }
        let (count, to) = (reply.answer.count, reply.answer.to)
        guard to < last, count < limits.events, reply.answer.byteCount < limits.bytes else {
            guard count == 0, timer != nil, !gateway.share.isLeaving else { return finish() }
            if let divergence = gateway.share.divergence { return failed(divergence) }
            // Events that arrived after the request was admitted have not woken this waiter.
            if gateway.rings[partition].head > last { return moved() }
            if let error = gateway.share.stop(of: partition) { return failed(error) }
            return gateway.join(self)
        }
        gateway.read(
            stream,
            through: filter,
            partition: partition,
            from: to + 1,
            to: last,
            bytes: EventRangeResponse.pieceBytes,
            events: limits.events - count,
            for: access
        ) { [self] result in
            switch result {
            case .success(let chunk) where hasOutcomes && chunk.count > 0:
                gateway.addOutcomes(to: chunk, of: stream, for: access) { [self] result in
                    switch result {
                    case .success(let chunk): take(chunk)
                    case .failure(let problem):
                        end()
                        reply.fail(problem)
                    }
                }
            case .success(let chunk): take(chunk)
            case .failure(let error): failed(gateway.reason(error, stream))
            }
        }
    }

    private func take(_ chunk: EventRange) {
        reply.append(chunk) { [self] in
            if reply.answer.to == last { return collect() }
            // A long answer from the ring must not delay other clients.
            gateway.loop.bound { [self] in collect() }(())
        }
    }

    private func finish() {
        end()
        reply.end()
    }

    private func end() {
        gateway.leave(self)
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
        if gateway.streamWaiters.holds(self) { moved() }
    }

    func moved() {
        gateway.leave(self)
        last = gateway.rings[partition].head
        reply.answer.head = last
        collect()
    }

    func failed(_ error: ReelError) {
        end()
        refuse(gateway.failure(error, stream))
    }

    func tick(nowMs: Int64) {
        if access.hasExpired(nowMs: gateway.loop.wallMs) {
            failed(.tokenExpired)
        }
    }

    func askToLeave(afterMs: Int64) {
        timer?.cancel()
        stopWaiting()
    }
}
