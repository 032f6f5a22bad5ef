public import ReelCore
public import ReelNet

/// An answer of events on its way to a client, at its pace: a piece, and the next one when that is with the kernel. So
/// a slow reader costs one piece. What is no longer than a piece goes out whole, with its length.
public final class EventRangeResponse {
    /// About so many bytes of events are worth reading at once.
    public static let pieceBytes = 64 << 10

    /// What has been answered so far.
    public var answer: EventRangeBody
    private let exchange: HTTPExchange
    private let headers: HTTPHeaders
    private let place: (stream: StreamName, epoch: Epoch, partition: Int)
    private let isWhole: Bool
    private var hasBegun = false

    /// `isWhole`: where it cannot be had to its end, the connection breaks off. Any other answer may end early, as its
    /// `to` says.
    public init(
        _ answer: EventRangeBody,
        of stream: StreamName,
        epoch: Epoch,
        partition: Int,
        headers: HTTPHeaders = ["cache-control": "no-store"],
        isWhole: Bool = false,
        through exchange: HTTPExchange
    ) {
        self.answer = answer
        self.exchange = exchange
        self.headers = headers
        self.isWhole = isWhole
        place = (stream, epoch, partition)
    }

    /// Goes on with a chunk. `next` is called, now or later, when there is room for another.
    public func append(_ chunk: EventRange, next: @escaping () -> Void) {
        answer.append(chunk)
        guard answer.body.count >= Self.pieceBytes / 2 else { return next() }
        begin()
        // To HEAD the head was all.
        guard exchange.isOpen else { return }
        exchange.write(answer.takeBody())
        exchange.drained = { [unowned exchange] in
            exchange.drained = nil
            next()
        }
    }

    private func begin() {
        guard !hasBegun else { return }
        hasBegun = true
        exchange.start(status: 200, headers: fields)
        exchange.write(answer.opening(place.stream, place.epoch, place.partition))
    }

    private var fields: HTTPHeaders {
        var fields = headers
        fields.add("content-type", "application/json")
        return fields
    }

    /// Ends it as far as it got.
    public func end() {
        guard hasBegun else {
            let body = answer.bytes(place.stream, place.epoch, place.partition)
            return exchange.respond(HTTPResponse(status: 200, headers: fields, body: body))
        }
        exchange.write(answer.takeBody() + answer.closing)
        exchange.end()
    }

    /// It cannot go on. Who was not answered anything yet is told why.
    public func fail(_ problem: Problem) {
        guard hasBegun else { return exchange.respond(problem.response) }
        if isWhole { exchange.abort() } else { end() }
    }
}

@available(*, unavailable)
extension EventRangeResponse: Sendable {}
