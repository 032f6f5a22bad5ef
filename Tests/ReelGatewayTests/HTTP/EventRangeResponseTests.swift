import EventLogConformance
import ReelCore
import ReelNet
import ReelNode
import Synchronization
import TestSupport
import Testing

/// Tests an answer of events that is longer than the piece that a gateway sends at once.
@Suite(.timeLimit(.minutes(15))) struct EventRangeResponseTests {
    /// A handler that answers with `count` pieces, and checks before each piece how many bytes wait for the reader.
    private final class Pieces: HTTPHandler {
        private let count: Int
        private let value = Array(#"{"text":"\#(String(repeating: "x", count: EventRangeResponse.pieceBytes))"}"#.utf8)
        private(set) var exchange: HTTPExchange?
        private(set) var reply: EventRangeResponse?
        private(set) var pendingWhenAsked = 0

        init(_ count: Int) { self.count = count }

        func respond(to request: HTTPRequest, _ exchange: HTTPExchange) {
            self.exchange = exchange
            reply = EventRangeResponse(
                EventRangeBody(from: 0, head: Seq(count)),
                of: StreamName("todo")!,
                epoch: Epoch(1),
                partition: 0,
                isWhole: request.head.target == "/whole",
                through: exchange
            )
            resume()
        }

        private func resume() {
            guard let reply, let exchange else { return }
            pendingWhenAsked = max(pendingWhenAsked, exchange.pendingBytes)
            if reply.answer.count == count {
                return exchange.request.target == "/" ? reply.end() : reply.fail(Problem(.logUnavailable, "gone"))
            }
            var chunk = EventRange(from: reply.answer.to + 1, to: reply.answer.to + 1)
            value.withUnsafeBytes { chunk.append(seq: chunk.from, value: $0) }
            reply.append(chunk) { [self] in resume() }
        }

        func upgrade(_ offer: WebSocketOffer) -> WebSocketDecision { .refuse(HTTPResponse(status: 404)) }
        func refusal(of violation: HTTPViolation) -> HTTPResponse { HTTPResponse(status: violation.status) }
    }

    private struct Heard {
        var head: HTTPResponseHead?
        var bytes: [UInt8] = []
        var hasEnded = false
        var hasFailed = false
        var isOver: Bool { hasEnded || hasFailed }
    }

    private final class Reader {
        var call: HTTPCall?
    }

    /// Sends a request and returns the answer, with the most bytes that waited for the reader. A slow reader pauses at
    /// the head until the kernel's buffer is full.
    private func ask(_ target: String, pieces count: Int, isSlow: Bool) async throws -> (heard: Heard, pending: Int) {
        let loop = try EventLoop()
        defer {
            loop.stop()
            loop.join()
        }
        let heard = Mutex(Heard())
        let (pieces, address) = try loop.sync {
            let pieces = Pieces(count)
            let server = HTTPServer(on: loop, .patient, handler: pieces)
            return (LoopBound(pieces, on: loop), try server.listen(on: try SocketAddress("127.0.0.1", port: 0)))
        }
        let readers = try EventLoop()
        defer {
            readers.stop()
            readers.join()
        }
        let reader = try readers.sync {
            let reader = Reader()
            var request = HTTPClientRequest("GET", host: address.host, port: address.port, target: target)
            request.timeout = LiveGateway.patience
            reader.call = HTTPClient(on: readers).send(request) { event in
                heard.withLock { heard in
                    switch event {
                    case .head(let head):
                        heard.head = head
                        if isSlow { reader.call?.pause() }
                    case .data(let bytes): heard.bytes += bytes
                    case .end: heard.hasEnded = true
                    case .failed: heard.hasFailed = true
                    }
                }
            }
            return LoopBound(reader, on: readers)
        }
        if isSlow {
            // The reader pauses when it gets the head; `resume` before that would have no effect.
            try await eventually("the head has come") { heard.withLock { $0.head != nil } }
            try await eventually("the kernel is full") {
                try loop.sync { pieces.value.exchange?.pendingBytes ?? 0 } > 0
            }
            try readers.sync { reader.value.call?.resume() }
        }
        try await eventually("it goes on") { heard.withLock { $0.isOver } }
        return (heard.withLock { $0 }, try loop.sync { pieces.value.pendingWhenAsked })
    }

    @Test("a slow reader costs one piece") func aSlowReaderCosts() async throws {
        let count = 400
        let (heard, pending) = try await ask("/", pieces: count, isSlow: true)
        #expect(heard.hasEnded && heard.head?.status == 200)
        #expect(pending == 0, "the next piece is made once the one before is with the kernel")
        #expect(heard.bytes.count > count * EventRangeResponse.pieceBytes)
        #expect(heard.bytes.suffix(11) == Array(#"],"to":399}"#.utf8))
    }

    @Test("a partial response that fails midway ends at its current position") func partialResponseEnds() async throws {
        let (heard, _) = try await ask("/part", pieces: 3, isSlow: false)
        #expect(heard.hasEnded && heard.bytes.suffix(9) == Array(#"],"to":2}"#.utf8))
    }

    @Test("a response that must be whole aborts when it fails midway") func wholeResponseAborts() async throws {
        #expect(try await ask("/whole", pieces: 3, isSlow: false).heard.hasFailed)
    }

    @Test("a response that fails before it begins returns the error status") func earlyFailureReturnsStatus()
        async throws
    {
        for target in ["/part", "/whole"] {
            let (heard, _) = try await ask(target, pieces: 0, isSlow: false)
            #expect(heard.hasEnded && heard.head?.status == 503)
        }
    }
}
