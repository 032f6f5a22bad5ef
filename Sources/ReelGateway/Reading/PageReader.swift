import ReelCore
import ReelLog
import ReelNode

/// The reader of log pages on one loop. It begins reads of the log, and keeps the readers that wait for each. On its
/// loop only.
final class PageReader {
    /// A reader that waits for a page.
    struct Waiter {
        let reader: any EventReader
        let query: LogQuery
        /// True if the reader holds an operation of its account until the read ends.
        let hasBegun: Bool
    }

    /// The approximate maximum size of a page in bytes, all streams together. No piece of any source is larger.
    static let pageBytes = 512 << 10
    /// The maximum number of pages that are searched for one piece.
    private static let pagesMax = 32

    private let loop: any HostLoop
    private let context: GatewayContext
    /// The number of this loop in the page cache.
    private var number = 0
    /// The readers that wait for each read, by the read's id.
    private var waiting: [Int: [Waiter]] = [:]
    /// Called for each waiter when its read has ended, with the page, or with nil if the waiter has to look again.
    /// It is never called inside `join` or `begin`.
    var whenEnded: (Waiter, Result<LogPage?, LogError>) -> Void = { _, _ in }

    init(on loop: any HostLoop, context: GatewayContext) {
        self.loop = loop
        self.context = context
        number = context.pages.join(
            loop.bound { [weak self] (news: PageCache.News) in self?.ended(news.reading, news.outcome) }
        )
    }

    // MARK: Waiting for a page

    /// Returns the page with the query's first seq; nil: it is not kept.
    func kept(for query: LogQuery) -> LogPage? {
        let page = context.pages.page(at: query.from, of: query.partition)
        if page != nil { context.meters.pagesKept.add() }
        return page
    }

    /// Waits for a read of the query's first seq that is under way. Returns false if there is none.
    func join(_ waiter: Waiter) -> Bool {
        let query = waiter.query
        guard let found = context.pages.find(query.from, of: query.partition, loop: number) else { return false }
        wait(waiter, for: found)
        return true
    }

    /// Begins a read of the log for a waiter, unless another loop has begun the same read meanwhile.
    func begin(_ waiter: Waiter) {
        let query = waiter.query
        wait(waiter, for: context.pages.findOrBegin(query.from, to: query.to, of: query.partition, loop: number))
    }

    private func wait(_ waiter: Waiter, for found: PageCache.Found) {
        switch found {
        case .page(let page):
            context.meters.pagesKept.add()
            // The page has come into the cache since the reader looked for it.
            loop.schedule { [self] in whenEnded(waiter, .success(page)) }
        case .reading(let reading):
            context.meters.pagesJoined.add()
            waiting[reading.id, default: []].append(waiter)
        case .begun(let reading):
            waiting[reading.id, default: []].append(waiter)
            begin(reading, bytes: waiter.query.bytes)
        }
    }

    private func begin(_ reading: PageCache.Reading, bytes: Int) {
        context.meters.pagesRead.add()
        let (pages, end) = (context.pages, context.health.end(of: reading.partition)?.seq ?? largestInteger)
        loop.offload {
            pages.read(reading, bytes: bytes, end: end)
        } then: { _ in
        }
    }

    private func ended(_ reading: PageCache.Reading, _ outcome: PageCache.Outcome) {
        for waiter in waiting.removeValue(forKey: reading.id) ?? [] {
            switch outcome {
            case .success(let page): whenEnded(waiter, .success(page))
            // The waiter has joined a read that began before the log's first seq.
            case .failure(let error) where error.code == .truncated && waiter.query.from != reading.seqs.lowerBound:
                whenEnded(waiter, .success(nil))
            case .failure(let error): whenEnded(waiter, .failure(error))
            }
        }
    }

    // MARK: Pieces

    /// Returns the piece of a query that begins in a page. It covers at least one seq, and continues in later pages
    /// that are kept.
    func piece(for query: LogQuery, from first: LogPage) -> EventRange {
        // A client that takes a whole page at a time most often wants the next one.
        if query.bytes >= Self.pageBytes, query.events == .max,
            let ahead = context.pages.ahead(of: first, to: query.to, of: query.partition)
        {
            begin(ahead, bytes: Self.pageBytes)
        }
        let room = query.filter == nil ? min(query.bytes, first.size(of: query.stream)) : 0
        var builder = EventRangeBuilder(from: query.from, bytes: query.bytes, events: query.events, room: room)
        var filter = FilterRun(query.filter)
        var (page, pages) = (first, 1)
        while page.extend(&builder, through: &filter, with: query.stream, to: query.to), builder.range.to < query.to,
            pages < Self.pagesMax
        {
            guard let next = context.pages.page(at: builder.range.to + 1, of: query.partition) else { break }
            page = next
            pages += 1
        }
        if pages > 1 { context.meters.pagesKept.add(pages - 1) }
        return builder.range
    }
}

@available(*, unavailable)
extension PageReader: Sendable {}
