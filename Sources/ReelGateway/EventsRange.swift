import ReelCore
import ReelNet
import ReelNode

/// The answer to a request for a range of a stream: what follows a seq, or a whole block.
final class EventsRange {
    /// Seqs of a block.
    static let blockSeqs: Int64 = 1_024
    /// An answer that is not a block has about so many bytes at most; `to` says how far it got.
    private static let answerBytes = 4 << 20

    private let gateway: GatewayLoop
    private let stream: StreamName
    private let partition: Int
    private let exchange: HTTPExchange

    init(_ gateway: GatewayLoop, _ stream: StreamName, _ exchange: HTTPExchange) {
        self.gateway = gateway
        self.stream = stream
        self.exchange = exchange
        partition = stream.partition(of: gateway.share.partitions)
    }

    /// Everything behind a seq, up to the head or the limit of events.
    func answer(after: Seq, epoch: Epoch?, limit: Int) {
        gateway.admit(stream, epoch: epoch, lowest: after + 1, highest: after) { [self] failure in
            if let failure { return refuse(failure) }
            collect(EventsAnswer(from: after + 1, head: gateway.rings[partition].head), limit: limit)
        }
    }

    private func collect(_ answer: EventsAnswer, limit: Int) {
        var answer = answer
        guard answer.to < answer.head, answer.count < limit, answer.body.count < Self.answerBytes else {
            return exchange.respond(.json(answer.bytes(stream, gateway.share.epoch, partition)))
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
                collect(answer, limit: limit)
            case .failure(let error): refuse(gateway.failure(gateway.reason(error, stream), stream))
            }
        }
    }

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
            exchange.start(
                status: 200,
                headers: [
                    "content-type": "application/json", "cache-control": "public, max-age=31536000, immutable",
                    "etag": "\"\(epoch):\(stream):\(block)\"",
                ]
            )
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
