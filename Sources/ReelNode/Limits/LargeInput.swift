import ReelCore
public import ReelNet

/// Reads the bodies of requests and the messages of WebSockets. A large one is read on a thread for long work, so that
/// it does not block its loop. On each loop, one large input of a payer is read at a time; the payer's others wait. On
/// its loop.
public final class LargeInput {
    /// The maximum size of a body or message that is read on the loop, in bytes.
    public static let smallBytes = 64 << 10
    /// The maximum number of large bodies of one payer that wait on one loop. They use memory even if their clients
    /// have gone. A message needs no such limit: while it waits, its WebSocket is not read.
    static let waitingMax = 16

    /// The waiting inputs of each payer that has one being read. Each closure starts the reading, and returns false if
    /// the client has gone.
    private var queues: [Payer: [() -> Bool]] = [:]

    /// An object that reads nothing yet.
    public init() {}

    /// Reads the body of a request.
    ///
    /// - Parameters:
    ///   - request: The request.
    ///   - payer: The payer of the request, whose large inputs are read one after the other.
    ///   - exchange: The exchange of the request.
    ///   - prepare: Called on the loop when the reading begins. Its result reads the body; a large one on another
    ///     thread.
    ///   - then: Called on the loop with the content. For a small body it is called before `read` returns. For a large
    ///     one it is called later, if the exchange is still open.
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
        if let waiting = queues[payer], waiting.count >= Self.waitingMax {
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

    /// Reads a large message of a WebSocket. The WebSocket delivers no further message until the reading has ended.
    ///
    /// - Parameters:
    ///   - socket: The WebSocket.
    ///   - payer: The payer of the message, whose large inputs are read one after the other.
    ///   - prepare: Called on the loop when the reading begins. Its result reads the message on another thread.
    ///   - then: Called on the loop with the content, after `read` has returned, if the WebSocket is still open.
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

    /// Reads on a thread for long work once no other input of the payer is being read.
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
        if queues[payer] == nil {
            queues[payer] = []
            if !begin() { queues[payer] = nil }
        } else {
            queues[payer]?.append(begin)
        }
    }

    /// Starts the next waiting input of a client that is still connected.
    private func beginNext(of payer: Payer) {
        while var queue = queues[payer], !queue.isEmpty {
            let begin = queue.removeFirst()
            queues[payer] = queue
            if begin() { return }
        }
        queues[payer] = nil
    }
}

@available(*, unavailable)
extension LargeInput: Sendable {}
