import ReelCore
public import ReelNet

/// Reads the bodies of requests. A large one is read on a thread for long work, so that it does not stop its loop. A
/// payer has one such body under way on each loop, and a few wait for it. On its loop only.
public final class LargeBodies {
    /// The largest body that is read on the loop, in bytes.
    public static let smallBytes = 64 << 10
    /// The large bodies of one payer that wait on one loop. They hold memory though their clients may have gone.
    static let waitingMax = 16

    /// The bodies that wait of each payer that has one under way. Each closure begins the reading of one, and returns
    /// false if its client has gone.
    private var lines: [Payer: [() -> Bool]] = [:]

    /// No body is being read.
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
        let begin = { [self] in
            guard exchange.isOpen else { return false }
            let read = prepare()
            exchange.loop.offload(isLong: true) {
                Result { () throws(Problem) in try read(true) }
            } then: { [self] result in
                beginNext(of: payer)
                if exchange.isOpen { then(result) }
            }
            return true
        }
        guard let waiting = lines[payer] else {
            lines[payer] = []
            _ = begin()
            return
        }
        guard waiting.count < Self.waitingMax else {
            var problem = Problem(
                .overloaded,
                "found \(waiting.count) bodies of more than \(Self.smallBytes) bytes of this \(payer.words.whose) that"
                    + " wait to be read, expected fewer at once; ask again"
            )
            problem.retryMs = 1_000
            return then(.failure(problem))
        }
        lines[payer]?.append(begin)
    }

    /// One of the payer's bodies was read: the next one begins whose client is still there.
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
extension LargeBodies: Sendable {}
