import ReelNet

/// An answer on its way from a snapshot node to a client, at the client's pace. On its loop only.
final class ProxiedResponse {
    private let exchange: HTTPExchange
    /// The request to the node.
    var call: HTTPCall?
    private let preamble: [UInt8]
    /// The number of bytes of the body that the node may still send.
    private var bytesLeft = 0
    /// Called if the node sends more than it may.
    var overflowed: () -> Void = {}

    /// The number of bytes waiting for the client above which the node's answer is paused.
    private static let mostPending = 512 << 10

    /// Creates an answer. `preamble` is sent before the body of an answer with status 200.
    init(_ exchange: HTTPExchange, preamble: [UInt8]) {
        self.exchange = exchange
        self.preamble = preamble
    }

    /// Starts the answer with this head.
    func begin(_ answer: PeerAnswer) {
        bytesLeft = answer.bytesMax
        exchange.broken = { [self] in
            call?.cancel()
            call = nil
        }
        if answer.status == 304 {
            call = nil
            return exchange.respond(HTTPResponse(status: 304, headers: answer.headers))
        }
        let first = answer.status == 200 ? preamble : []
        exchange.start(status: answer.status, headers: answer.headers, length: answer.length.map { $0 + first.count })
        exchange.write(first)
    }

    /// Continues the answer with an event of the request to the node.
    func take(_ event: HTTPClient.Event) {
        switch event {
        case .head: break
        case .data(let bytes): write(bytes)
        case .end:
            call = nil
            exchange.end()
        case .failed:
            call = nil
            exchange.abort()
        }
    }

    private func write(_ bytes: [UInt8]) {
        guard bytes.count <= bytesLeft else {
            let call = call
            self.call = nil
            exchange.abort()
            call?.cancel()
            return overflowed()
        }
        bytesLeft -= bytes.count
        exchange.write(bytes)
        guard exchange.pendingBytes > Self.mostPending, let call else { return }
        call.pause()
        exchange.drained = { [self] in
            exchange.drained = nil
            self.call?.resume()
        }
    }
}
