public import ReelNet

/// Reads the bodies of requests. A large one is read on a thread for long work, so that it does not stop its loop. A
/// payer has a few such bodies under way on each loop, and its others wait for them. On its loop only.
public final class LargeBodies {
    /// The largest body that is read on the loop, in bytes.
    public static let smallBytes = 64 << 10
    /// The large bodies of one payer that are under way on one loop.
    private static let underWayMax = 2

    /// The bodies of one payer.
    private struct Line {
        var underWay = 0
        /// Begins the reading of each body that waits, in order.
        var waiting: [() -> Void] = []
    }

    private var lines: [Payer: Line] = [:]

    /// No body is being read.
    public init() {}

    /// Calls `read`, for a large body on another thread, and `then` with the result. For a small body both are called
    /// before it returns; else `then` is called later, if the exchange is still open then.
    public func read<Content: Sendable>(
        _ request: HTTPRequest,
        of payer: Payer,
        _ exchange: HTTPExchange,
        _ read: @escaping @Sendable (_ isLarge: Bool) throws(Problem) -> Content,
        then: @escaping (Result<Content, Problem>) -> Void
    ) {
        guard request.body.count > Self.smallBytes else {
            return then(Result { () throws(Problem) in try read(false) })
        }
        let begin = { [self] in
            // The client may have gone while the body waited.
            guard exchange.isOpen else { return ended(payer) }
            exchange.loop.offload(isLong: true) {
                Result { () throws(Problem) in try read(true) }
            } then: { [self] result in
                ended(payer)
                if exchange.isOpen { then(result) }
            }
        }
        var line = lines[payer] ?? Line()
        if line.underWay < Self.underWayMax {
            line.underWay += 1
            lines[payer] = line
            begin()
        } else {
            line.waiting.append(begin)
            lines[payer] = line
        }
    }

    /// One of the payer's bodies was read: the next one begins.
    private func ended(_ payer: Payer) {
        guard var line = lines[payer] else { return }
        let next = line.waiting.isEmpty ? nil : line.waiting.removeFirst()
        if next == nil { line.underWay -= 1 }
        lines[payer] = line.underWay == 0 ? nil : line
        next?()
    }
}

@available(*, unavailable)
extension LargeBodies: Sendable {}
