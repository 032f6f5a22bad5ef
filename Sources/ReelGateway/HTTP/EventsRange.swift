import ReelCore
import ReelNet
import ReelNode

/// The answer to a request for a range of a stream: what follows a seq, or a whole block. Where nothing follows yet, it
/// can wait for it (a long poll).
final class EventsRange: Follower {
    /// Seqs of a block.
    static let blockSeqs: Int64 = 1_024
    /// An answer that is not a block has about so many bytes at most; `to` says how far it got.
    private static let answerBytes = 4 << 20

    private let gateway: GatewayLoop
    let stream: StreamName
    let partition: Int
    private let exchange: HTTPExchange
    private let access: Access
    private var answer = EventsAnswer(from: 0, head: .none)
    private var limit = 0
    /// Ends the wait.
    private var timer: LoopTimer?

    init(_ gateway: GatewayLoop, _ stream: StreamName, _ exchange: HTTPExchange, _ access: Access) {
        self.access = access
        self.gateway = gateway
        self.stream = stream
        self.exchange = exchange
        partition = stream.partition(of: gateway.share.partitions)
    }

    /// Everything behind a seq, up to the head or the limit of events; where there is no event yet, once there is one,
    /// or after so many seconds.
    func answer(after: Seq, epoch: Epoch?, limit: Int, waitS: Int64) {
        gateway.admit(stream, epoch: epoch, lowest: after + 1, highest: after) { [self] failure in
            if let failure { return refuse(failure) }
            answer = EventsAnswer(from: after + 1, head: gateway.rings[partition].head)
            self.limit = limit
            if waitS > 0 {
                timer = exchange.loop.timer(after: .seconds(waitS)) { [self] in stopWaiting() }
                exchange.broken = { [self] in end() }
            }
            collect()
        }
    }

    private func collect() {
        guard answer.to < answer.head, answer.count < limit, answer.body.count < Self.answerBytes else {
            guard answer.count == 0, timer != nil else { return finish() }
            if let error = gateway.share.stop(of: partition) { return failed(error) }
            return gateway.join(self)
        }
        gateway.read(
            stream,
            partition: partition,
            from: answer.to + 1,
            to: answer.head,
            bytes: Self.answerBytes - answer.body.count,
            events: limit - answer.count
        ) { [self] result in
            switch result {
            case .success(let chunk):
                answer.append(chunk)
                collect()
            case .failure(let error): failed(gateway.reason(error, stream))
            }
        }
    }

    private func finish() {
        end()
        exchange.respond(.json(answer.bytes(stream, gateway.share.epoch, partition)))
    }

    private func end() {
        gateway.leave(self)
        timer?.cancel()
        timer = nil
    }

    /// Answers with what was proven, now or when that is known.
    private func stopWaiting() {
        timer = nil
        if gateway.followers.holds(self) { moved() }
    }

    // MARK: Waiting

    func moved() {
        gateway.leave(self)
        answer.head = gateway.rings[partition].head
        collect()
    }

    func failed(_ error: ReelError) {
        end()
        refuse(gateway.failure(error, stream))
    }

    func tick(nowMs: Int64) {
        if access.hasExpired(nowMs: gateway.loop.wallMs) {
            failed(ReelError(.unauthorized, "the token has expired"))
        }
    }

    func sendAway(afterMs: Int64) {
        timer?.cancel()
        stopWaiting()
    }

    // MARK: Blocks

    /// A block, once it is whole; it never changes.
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
            var headers: HTTPHeaders = ["cache-control": "public, max-age=31536000, immutable", "etag": etag]
            if exchange.request.holds(etag: etag) {
                return exchange.respond(HTTPResponse(status: 304, headers: headers))
            }
            headers.add("content-type", "application/json")
            exchange.start(status: 200, headers: headers)
            let answer = EventsAnswer(from: seqs.lowerBound, to: seqs.upperBound, head: seqs.upperBound)
            exchange.write(answer.opening(stream, gateway.share.epoch, partition))
            write(seqs, isFirst: true)
        }
    }

    /// Writes the events of a block piece by piece, at the reader's pace.
    private func write(_ seqs: ClosedRange<Seq>, isFirst: Bool) {
        guard exchange.isOpen else { return }
        gateway.read(
            stream,
            partition: partition,
            from: seqs.lowerBound,
            to: seqs.upperBound,
            bytes: 256 << 10
        ) { [self] result in
            guard case .success(let chunk) = result else { return exchange.abort() }
            if chunk.count > 0 { exchange.write((isFirst ? [] : [UInt8(ascii: ",")]) + chunk.body) }
            guard chunk.to < seqs.upperBound else {
                exchange.write(EventsAnswer.closing)
                return exchange.end()
            }
            let rest = (chunk.to + 1)...seqs.upperBound
            let isStillFirst = isFirst && chunk.count == 0
            if chunk.count == 0 { return write(rest, isFirst: isStillFirst) }
            exchange.drained = { [self] in
                exchange.drained = nil
                write(rest, isFirst: isStillFirst)
            }
        }
    }

    private func refuse(_ failure: ServerFrame.Failure) {
        exchange.respond(Problem(failure).response)
    }
}
