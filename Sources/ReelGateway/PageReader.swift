import ReelCore
import ReelLog
import ReelNode

/// What is wanted of the log.
struct LogQuery {
    var stream: StreamName
    /// Nil: everything.
    var filter: EventFilter?
    var partition: Int
    var from: Seq
    /// The last seq at most.
    var to: Seq
    /// The most bytes, unless one event has more.
    var bytes: Int
    /// The most events.
    var events: Int
}

/// The log's pages as one loop reads them: who waits for one, and whose turn it is. On its loop only.
final class PageReader {
    private struct Waiter {
        var query: LogQuery
        var hasRoom: () -> Bool
        var then: (Result<EventRange, LogError>) -> Void
    }

    /// A page has about so many bytes at most, all streams together; so has an answer.
    static let pageBytes = 512 << 10
    /// So many pages are gone over at once.
    private static let pagesMax = 32

    private let loop: any HostLoop
    private let share: GatewayShare
    private var number = 0
    /// Who waits for each read.
    private var waiting: [Int: [Waiter]] = [:]
    /// Those whose page is there are answered in turn.
    private let turns: FairQueue

    init(on loop: any HostLoop, turns: FairQueue, share: GatewayShare) {
        self.loop = loop
        self.turns = turns
        self.share = share
        number = share.pages.join(
            loop.bound { [weak self] (news: PageCache.News) in self?.loaded(news.reading, news.outcome) }
        )
    }

    /// Reads a range whose records the tail has read, a bounded piece of it; it goes on by at least one seq, unless
    /// `hasRoom` says that nothing can be taken now. `mayBegin` is asked before a read of the log is begun for it;
    /// false, and nothing is done, if it may not. Calls back later.
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
            // It joined a read that did not get so far, or began before the log does.
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
        // Who takes a whole page at a time most often wants the next one.
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
