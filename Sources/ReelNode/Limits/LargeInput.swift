import ReelCore
public import ReelNet

/// Reads the bodies of requests and the messages of WebSockets. A large one is read on a thread for long work, so that
/// it does not stop its loop. A payer has one of them under way on each loop; the others wait for it. On its loop only.
public final class LargeInput {
    /// The largest body or message that is read on the loop, in bytes.
    public static let smallBytes = 64 << 10
    /// The large bodies of one payer that wait on one loop. They hold memory though their clients may have gone. A
    /// message needs no such limit: while it waits, its socket is not read.
    static let waitingMax = 16

    /// What waits of each payer that has something under way. Each closure begins the reading, and returns false if the
    /// client has gone.
    private var lines: [Payer: [() -> Bool]] = [:]

    /// Nothing is being read.
    public init() {}

    /// Reads the body of a request.
    ///
    /// - Parameters:
    ///   - prepare: Called on the loop when the reading begins. Its result reads the body, a large one on another
    ///     thread.
    ///   - then: Called with what was read; of a small body before `read` returns, else later on the loop, if the
    ///     exchange is still open.
    public func read<Content: Sendable>(
        _ request: HTTPRequest,
        of payer: Payer,
        _ exchange: HTTPExchange,
        _ prepare: @escaping () -> @Sendable (_ isLarge: Bool) throws(Problem) -> Content,
        then: @escaping (Result<Content, Problem>) -> Void
    ) {
        guard request.body.count > Self.smallBytes else {
            let read = prepare()
            return then(Result { () throws(Problem) in try read(false) })
        }
        if let waiting = lines[payer], waiting.count >= Self.waitingMax {
            var problem = Problem(
                .overloaded,
                "found \(waiting.count) bodies of more than \(Self.smallBytes) bytes of this \(payer.words.whose) that"
                    + " wait to be read, expected fewer at once; ask again"
            )
            problem.retryMs = 1_000
            return then(.failure(problem))
        }
        let prepare = {
            let read = prepare()
            return { @Sendable in Result { () throws(Problem) in try read(true) } }
        }
        takeTurn(of: payer, on: exchange.loop, isOpen: { exchange.isOpen }, prepare, then: then)
    }

    /// Reads a large message of a WebSocket, which hands over no further one until it is released. `prepare` as above;
    /// `then` is called later on the loop, if the socket is still open.
    public func read<Content: Sendable>(
        messageOf socket: WebSocket,
        of payer: Payer,
        _ prepare: @escaping () -> @Sendable () -> Content,
        then: @escaping (Content) -> Void
    ) {
        socket.hold()
        takeTurn(of: payer, on: socket.loop, isOpen: { !socket.isClosed }, prepare) { content in
            then(content)
            socket.release()
        }
    }

    /// Reads on a thread for long work once nothing else of the payer is under way.
    private func takeTurn<Content: Sendable>(
        of payer: Payer,
        on loop: EventLoop,
        isOpen: @escaping () -> Bool,
        _ prepare: @escaping () -> @Sendable () -> Content,
        then: @escaping (Content) -> Void
    ) {
        let begin = { [self] in
            guard isOpen() else { return false }
            loop.offload(isLong: true, prepare()) { [self] content in
                beginNext(of: payer)
                if isOpen() { then(content) }
            }
            return true
        }
        if lines[payer] == nil {
            lines[payer] = []
            if !begin() { lines[payer] = nil }
        } else {
            lines[payer]?.append(begin)
        }
    }

    /// What the payer had under way was read: the next one begins whose client is still there.
    private func beginNext(of payer: Payer) {
        while var line = lines[payer], !line.isEmpty {
            let begin = line.removeFirst()
            lines[payer] = line
            if begin() { return }
        }
        lines[payer] = nil
    }
}

@available(*, unavailable)
extension LargeInput: Sendable {}
