public import ReelCore
public import ReelNet

/// A response with events that is sent at the client's pace. It sends a piece, and reads the next one once the kernel
/// has accepted it. So a slow reader costs the memory of one piece. A response that fits into one piece is sent whole,
/// with its length.
public final class EventRangeResponse {
    /// The approximate size of the events to read at once, in bytes.
    public static let pieceBytes = 64 << 10

    /// The body up to now.
    public var answer: EventRangeBody
    private let exchange: HTTPExchange
    private let headers: HTTPHeaders
    private let place: (stream: StreamName, epoch: Epoch, partition: Int)
    private let isWhole: Bool
    private var hasBegun = false

    /// Makes a response.
    ///
    /// - Parameters:
    ///   - answer: The body up to now.
    ///   - stream: The stream of the events.
    ///   - epoch: The epoch of the log.
    ///   - partition: The number of the partition that contains the stream.
    ///   - headers: The header fields besides the content type.
    ///   - isWhole: True if the connection is aborted when the response fails midway. False if the response then ends
    ///     early, and its `to` states the last seq.
    ///   - exchange: The exchange of the request.
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

    /// Adds a chunk that continues the range. `next` is called when the response can take another chunk, now or later.
    public func append(_ chunk: EventRange, next: @escaping () -> Void) {
        answer.append(chunk)
        guard answer.body.count >= Self.pieceBytes / 2 else { return next() }
        begin()
        // A response to HEAD ends after its head.
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

    /// Ends the response after the chunks that were added.
    public func end() {
        guard hasBegun else {
            let body = answer.bytes(place.stream, place.epoch, place.partition)
            return exchange.respond(HTTPResponse(status: 200, headers: fields, body: body))
        }
        exchange.write(answer.takeBody() + answer.closing)
        exchange.end()
    }

    /// Ends a response that cannot continue. If nothing was sent yet, the client gets the problem.
    public func fail(_ problem: Problem) {
        guard hasBegun else { return exchange.respond(problem.response) }
        if isWhole { exchange.abort() } else { end() }
    }
}

@available(*, unavailable)
extension EventRangeResponse: Sendable {}
