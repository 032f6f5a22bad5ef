import ReelCore
import ReelLog
import ReelNode

/// A query for events of the log.
struct LogQuery {
    var stream: StreamName
    /// The filter for events; nil: all events.
    var filter: EventFilter?
    var partition: Int
    var from: Seq
    /// The last seq of the answer at most.
    var to: Seq
    /// The maximum size of the events in bytes, unless a single event is larger.
    var bytes: Int
    /// The maximum number of events.
    var events: Int
}

/// The reader of log pages on one loop. It keeps the queries that wait for each page, and answers them in turn. On its
/// loop only.
final class PageReader {
    private struct Waiter {
        var query: LogQuery
        var hasRoom: () -> Bool
        var then: (Result<EventRange, LogError>) -> Void
    }

    /// The approximate maximum size of a page in bytes, all streams together, and of an answer.
    static let pageBytes = 512 << 10
    /// The maximum number of pages that are searched for one answer.
    private static let pagesMax = 32

    private let loop: any HostLoop
    private let share: GatewayShare
    /// The number of this loop in the page cache.
    private var number = 0
    /// The queries that wait for each read, by the read's id.
    private var waiting: [Int: [Waiter]] = [:]
    /// The queue of queries with a page that is there.
    private let turns: FairQueue

    init(on loop: any HostLoop, turns: FairQueue, share: GatewayShare) {
        self.loop = loop
        self.turns = turns
        self.share = share
        number = share.pages.join(
            loop.bound { [weak self] (news: PageCache.News) in self?.loaded(news.reading, news.outcome) }
        )
    }

    /// Reads a bounded piece of a range that the tail has already read.
    ///
    /// - Parameters:
    ///   - query: The range and its limits. The answer covers at least one seq of it, unless `hasRoom` returns false.
    ///   - mayBegin: Called before a read of the log begins for this query. If it returns false, nothing is done.
    ///   - hasRoom: Called when the page is there. If it returns false, `then` gets a range that proves nothing.
    ///   - then: Called with the result, always after `read` has returned.
    /// - Returns: False if `mayBegin` has returned false; then `then` is not called.
    func read(
        _ query: LogQuery,
        mayBegin: () -> Bool,
        hasRoom: @escaping () -> Bool,
        then: @escaping (Result<EventRange, LogError>) -> Void
    ) -> Bool {
        find(Waiter(query: query, hasRoom: hasRoom, then: then), mayBegin: mayBegin)
    }

    private func find(_ waiter: Waiter, mayBegin: () -> Bool) -> Bool {
        let query = waiter.query
        let (pages, partition) = (share.pages, query.partition)
        let found: PageCache.Found
        if let present = pages.find(query.from, of: partition, loop: number) {
            found = present
        } else {
            guard mayBegin() else { return false }
            // Another loop may have begun the same read meanwhile.
            found = pages.findOrBegin(query.from, to: query.to, of: partition, loop: number)
        }
        switch found {
        case .page(let page):
            share.meters.pagesKept.add()
            answerInTurn(waiter, from: page)
        case .reading(let reading):
            share.meters.pagesJoined.add()
            waiting[reading.id, default: []].append(waiter)
        case .begun(let reading):
            waiting[reading.id, default: []].append(waiter)
            begin(reading, bytes: min(query.bytes, Self.pageBytes))
        }
        return true
    }

    private func begin(_ reading: PageCache.Reading, bytes: Int) {
        share.meters.pagesRead.add()
        let (pages, end) = (share.pages, share.end(reading.partition)?.seq ?? largestInteger)
        loop.offload {
            pages.read(reading, bytes: bytes, end: end)
        } then: { _ in
        }
    }

    private func loaded(_ reading: PageCache.Reading, _ outcome: PageCache.Outcome) {
        for waiter in waiting.removeValue(forKey: reading.id) ?? [] {
            let seq = waiter.query.from
            switch outcome {
            case .success(let page) where page.seqs.contains(seq):
                answerInTurn(waiter, from: page)
            case .failure(let error) where error.code != .truncated || seq == reading.seqs.lowerBound:
                waiter.then(.failure(error))
            // The query joined a read that ended before its seq, or that began before the log's first seq.
            case .success, .failure:
                _ = find(waiter) { true }
            }
        }
    }

    private func answerInTurn(_ waiter: Waiter, from page: LogPage) {
        turns.add { [self] in
            let hasRoom = waiter.hasRoom()
            let from = waiter.query.from
            waiter.then(.success(hasRoom ? answer(waiter.query, from: page) : EventRange(from: from, to: from - 1)))
            return hasRoom
        }
    }

    private func answer(_ query: LogQuery, from page: LogPage) -> EventRange {
        // A client that takes a whole page at a time most often wants the next one.
        if query.bytes >= Self.pageBytes, query.events == .max,
            let ahead = share.pages.ahead(of: page, to: query.to, of: query.partition)
        {
            begin(ahead, bytes: Self.pageBytes)
        }
        return chunk(for: query, from: page)
    }

    private func chunk(for query: LogQuery, from first: LogPage) -> EventRange {
        let bytes = min(query.bytes, Self.pageBytes)
        var chunk =
            query.filter == nil
            ? first.chunk(of: query.stream, from: query.from, bytes: bytes)
            : EventRange(from: query.from, to: query.from - 1)
        var (page, pages, looked) = (first, 1, 0)
        while page.extend(
            &chunk,
            with: query.stream,
            through: query.filter,
            to: query.to,
            bytes: bytes,
            events: query.events,
            looked: &looked
        ), chunk.to < query.to, pages < Self.pagesMax {
            guard let next = share.pages.page(at: chunk.to + 1, of: query.partition) else { break }
            page = next
            pages += 1
        }
        if pages > 1 { share.meters.pagesKept.add(pages - 1) }
        return chunk
    }
}

@available(*, unavailable)
extension PageReader: Sendable {}
