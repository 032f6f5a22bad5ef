/// What a loop does a few of in each round: what else comes on it does not wait for a crowd. On its loop only.
final class Turns {
    private static let most = 16

    private let loop: any HostLoop
    private var waiting = Queue<() -> Void>()
    private var isUnderWay = false

    init(on loop: any HostLoop) {
        self.loop = loop
    }

    /// Runs the body in its turn, later.
    func add(_ body: @escaping () -> Void) {
        waiting.append(body)
        take()
    }

    private func take() {
        guard !isUnderWay, !waiting.isEmpty else { return }
        isUnderWay = true
        loop.bound { [self] in
            isUnderWay = false
            for _ in 0..<Self.most { waiting.popFirst()?() }
            take()
        }(())
    }
}
