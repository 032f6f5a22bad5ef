/// What a loop does a few of in each round: what else comes on it does not wait for a crowd. What has nothing to do any
/// more, once its turn comes, takes no place. On its loop only.
final class FairQueue {
    private static let most = 16

    private let loop: any HostLoop
    private var waiting = Queue<() -> Bool>()
    private var isUnderWay = false

    init(on loop: any HostLoop) {
        self.loop = loop
    }

    /// Runs the body in its turn, later. It says whether there was something to do.
    func add(_ body: @escaping () -> Bool) {
        waiting.append(body)
        take()
    }

    private func take() {
        guard !isUnderWay, !waiting.isEmpty else { return }
        isUnderWay = true
        loop.bound { [self] in
            isUnderWay = false
            var left = Self.most
            while left > 0, let body = waiting.popFirst() {
                if body() { left -= 1 }
            }
            take()
        }(())
    }
}
