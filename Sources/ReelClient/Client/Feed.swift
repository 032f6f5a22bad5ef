internal import Synchronization

/// The elements that one reader of a sequence has not taken yet. Safe on any thread. A feed does not hold the client.
final class Feed<Element: Sendable>: Sendable {
    /// Appends an element to the pending ones, or merges it with them.
    typealias Gather = @Sendable (inout [Element], Element) -> Void

    private struct Waiter {
        var number: Int
        var continuation: CheckedContinuation<Element?, Never>
    }

    private struct State {
        var pending: [Element] = []
        /// The readers that wait for an element. Nothing is pending while there are any.
        var waiters: [Waiter] = []
        var waits = 0
        var isClosed = false
    }

    private let state = Mutex(State())
    private let gather: Gather

    init(_ gather: @escaping Gather) {
        self.gather = gather
    }

    /// True if a reader waits for an element.
    var isAwaited: Bool { state.withLock { !$0.waiters.isEmpty } }

    func add(_ element: Element) {
        let waiter = state.withLock { state -> Waiter? in
            if state.isClosed { return nil }
            if !state.waiters.isEmpty { return state.waiters.removeFirst() }
            gather(&state.pending, element)
            return nil
        }
        waiter?.continuation.resume(returning: element)
    }

    /// Ends the sequence after the pending elements.
    func close() {
        let waiters = state.withLock { state in
            state.isClosed = true
            defer { state.waiters = [] }
            return state.waiters
        }
        for waiter in waiters { waiter.continuation.resume(returning: nil) }
    }

    /// Returns the next element, and waits for it. Returns nil at the end, and if the task is cancelled.
    func next() async -> Element? {
        let number = state.withLock { state in
            state.waits += 1
            return state.waits
        }
        return await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let result = state.withLock { state -> Element?? in
                    if Task.isCancelled { return .some(nil) }
                    if !state.pending.isEmpty { return state.pending.removeFirst() }
                    if state.isClosed { return .some(nil) }
                    state.waiters.append(Waiter(number: number, continuation: continuation))
                    return nil
                }
                if let result { continuation.resume(returning: result) }
            }
        } onCancel: {
            let waiter = state.withLock { state in
                state.waiters.firstIndex { $0.number == number }.map { state.waiters.remove(at: $0) }
            }
            waiter?.continuation.resume(returning: nil)
        }
    }
}

/// The feeds of all readers of one kind of element. They are held weakly: a feed ends with its sequence and its
/// iterators.
final class Feeds<Element: Sendable>: Sendable {
    private struct Reader {
        weak var feed: Feed<Element>?
    }

    private struct State {
        var readers: [Reader] = []
        var isClosed = false
    }

    private let state = Mutex(State())
    private let gather: Feed<Element>.Gather

    init(_ gather: @escaping Feed<Element>.Gather) {
        self.gather = gather
    }

    /// True if there is no reader.
    var isEmpty: Bool { all.isEmpty }

    /// The feeds that are still held by their readers.
    var all: [Feed<Element>] { state.withLock { Self.held(&$0) } }

    /// Returns a feed of all elements that are added from now on. The feed has ended already if these feeds are closed.
    func make() -> Feed<Element> {
        let feed = Feed(gather)
        let isClosed = state.withLock { state in
            if !state.isClosed { state.readers.append(Reader(feed: feed)) }
            return state.isClosed
        }
        if isClosed { feed.close() }
        return feed
    }

    func add(_ element: Element) {
        for feed in all { feed.add(element) }
    }

    /// Ends all feeds.
    func close() {
        let feeds = state.withLock { state in
            state.isClosed = true
            defer { state.readers = [] }
            return Self.held(&state)
        }
        for feed in feeds { feed.close() }
    }

    private static func held(_ state: inout State) -> [Feed<Element>] {
        state.readers.removeAll { $0.feed == nil }
        return state.readers.compactMap(\.feed)
    }
}

/// State that the iterators of a sequence share. The first iterator begins where the sequence was made. A further
/// iterator continues the feed of one that was released, if there is such a feed. Otherwise it gets a new feed, which
/// begins where the iterator is made.
final class FeedSource<Element: Sendable>: Sendable {
    /// The use of a feed by one iterator. When the lease is released, the feed becomes idle and another iterator can
    /// take it.
    final class Lease: Sendable {
        let feed: Feed<Element>
        private let source: FeedSource

        fileprivate init(_ source: FeedSource) {
            self.source = source
            feed = source.idle.withLock { $0.take() } ?? source.feeds.make()
        }

        deinit { source.idle.withLock { if $0 == nil { $0 = feed } } }
    }

    private let feeds: Feeds<Element>
    private let idle: Mutex<Feed<Element>?>

    /// Creates a source of all later elements. `first`: an element that comes before them, nil for none.
    init(_ feeds: Feeds<Element>, first: Element? = nil) {
        self.feeds = feeds
        let feed = feeds.make()
        if let first { feed.add(first) }
        idle = Mutex(feed)
    }

    func lease() -> Lease { Lease(self) }
}
