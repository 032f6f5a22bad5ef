import ReelBase
import ReelCore
import ReelLog
import Synchronization

/// A cache of log pages for clients that catch up on events older than the rings. All loops of a gateway share it. From
/// any thread.
///
/// A page is read once for all clients that want it at the time. Pages are evicted by second chance (the CLOCK
/// algorithm): a page that was used since it was last checked is spared once. Pages, and reads under way, never have a
/// seq in common.
final class PageCache: Sendable {
    /// A read of the log that is under way. The page may end before the seqs that were asked for.
    struct Reading: Sendable {
        fileprivate let number: Int
        let partition: Int
        let seqs: ClosedRange<Seq>
        /// The loops that wait for the read.
        fileprivate var loops: Set<Int>

        /// A number that is the same on all loops.
        var id: Int { number }
    }

    typealias Outcome = Result<LogPage, LogError>
    typealias News = (reading: Reading, outcome: Outcome)

    /// The result of a search for a seq.
    enum Found: Sendable {
        case page(LogPage)
        /// A read under way. The loop gets its outcome.
        case reading(Reading)
        /// A read that the loop has to do now, by calling `read`, which tells it the outcome.
        case begun(Reading)
    }

    fileprivate struct Kept {
        let page: LogPage
        /// True if the page was used since it was read, or since it was spared.
        var isWanted = false
    }

    fileprivate struct State {
        /// The kept pages, by partition and seq.
        var pages: [[Kept]]
        /// The reads under way, by partition and seq. No two of them have a seq in common.
        var readings: [[Reading]]
        var readingCount = 0
        /// The kept pages in the order of their eviction.
        var order = Deque<(partition: Int, seq: Seq)>()
        var byteCount = 0
        var lastNumber = 0
        /// For each loop the function that tells it of an outcome.
        var loops: [@Sendable (News) -> Void] = []
    }

    /// The maximum number of seqs per page. Requests for a seq of a read wait for that read, although its page may end
    /// earlier.
    static let seqsMax: Seq = 4_096

    private let log: any EventLog
    /// The ranges of the log in which all records are known to be valid.
    let validated: ValidatedRanges
    private let byteLimit: Int
    private let state: Mutex<State>

    /// Creates a cache for `log` that keeps pages of at most `byteLimit` bytes in total.
    init(_ log: any EventLog, byteLimit: Int) {
        self.log = log
        validated = ValidatedRanges(partitions: log.partitions)
        self.byteLimit = byteLimit
        state = Mutex(
            State(
                pages: [[Kept]](repeating: [], count: log.partitions),
                readings: [[Reading]](repeating: [], count: log.partitions)
            )
        )
    }

    /// The number of bytes that the kept pages take.
    var byteCount: Int { state.withLock { $0.byteCount } }

    /// Registers a loop and returns its number. From now on `tell` is called with outcomes, on any thread, without the
    /// lock.
    func join(_ tell: @escaping @Sendable (News) -> Void) -> Int {
        state.withLock { state in
            state.loops.append(tell)
            return state.loops.count - 1
        }
    }

    /// Returns the kept page with the seq, and notes that it was used; nil: it is not kept.
    func page(at seq: Seq, of partition: Int) -> LogPage? {
        state.withLock { $0.page(at: seq, of: partition) }
    }

    /// Returns the page with the seq, or the read under way of it, which this loop then waits for. Returns nil if there
    /// is neither.
    func find(_ seq: Seq, of partition: Int, loop: Int) -> Found? {
        state.withLock { $0.find(seq, of: partition, loop: loop) }
    }

    /// Returns what `find` returns, or else begins a read for this loop, of a range that ends at `to` at most.
    func findOrBegin(_ seq: Seq, to: Seq, of partition: Int, loop: Int) -> Found {
        state.withLock { state in
            state.find(seq, of: partition, loop: loop)
                ?? .begun(state.begin(seq, to: to, of: partition, for: [loop]))
        }
    }

    /// Returns a read of the seqs after a page, to be done before a client wants them; nil: there is none. Reading
    /// ahead begins only while nothing else is read, so that the page is still kept when a client wants it.
    func ahead(of page: LogPage, to: Seq, of partition: Int) -> Reading? {
        let seq = page.seqs.upperBound
        guard seq <= to else { return nil }
        return state.withLock { state in
            guard state.readingCount == 0, state.page(at: seq, of: partition) == nil else { return nil }
            return state.begin(seq, to: to, of: partition, for: [])
        }
    }

    /// Does a read that was begun, of at most `bytes` bytes, and tells all loops that wait for it. Records after `end`
    /// are void. Blocks.
    func read(_ reading: Reading, bytes: Int, end: Seq) {
        let outcome = Result { () throws(LogError) in
            try LogPage(log, reading.partition, reading.seqs, bytes: bytes, end: end, validated: validated)
        }
        let listeners = state.withLock { (state) -> [@Sendable (News) -> Void] in
            let loops = state.end(reading).loops
            if case .success(let page) = outcome { state.keep(page, of: reading.partition, byteLimit: byteLimit) }
            return loops.map { state.loops[$0] }
        }
        for tell in listeners { tell((reading, outcome)) }
    }
}

extension PageCache.State {
    mutating func find(_ seq: Seq, of partition: Int, loop: Int) -> PageCache.Found? {
        if let page = page(at: seq, of: partition) { return .page(page) }
        let index = readingIndex(of: seq, in: partition)
        guard index < readings[partition].count, readings[partition][index].seqs.contains(seq) else { return nil }
        readings[partition][index].loops.insert(loop)
        return .reading(readings[partition][index])
    }

    /// Returns the index of the first read that ends at the seq or after it.
    private func readingIndex(of seq: Seq, in partition: Int) -> Int {
        readings[partition].partitioningIndex { $0.seqs.upperBound < seq }
    }

    /// Returns the index of the first page that contains the seq or begins after it.
    private func index(of seq: Seq, in partition: Int) -> Int {
        pages[partition].partitioningIndex { $0.page.seqs.upperBound <= seq }
    }

    mutating func page(at seq: Seq, of partition: Int) -> LogPage? {
        let index = index(of: seq, in: partition)
        guard index < pages[partition].count, pages[partition][index].page.seqs.contains(seq) else { return nil }
        pages[partition][index].isWanted = true
        return pages[partition][index].page
    }

    /// Returns the first seq after `seq` that is already read, or is being read.
    func next(after seq: Seq, of partition: Int) -> Seq {
        let index = index(of: seq, in: partition)
        let page = index < pages[partition].count ? pages[partition][index].page.seqs.lowerBound : .max
        let reading = readingIndex(of: seq, in: partition)
        return reading < readings[partition].count ? min(page, readings[partition][reading].seqs.lowerBound) : page
    }

    mutating func begin(_ seq: Seq, to: Seq, of partition: Int, for loops: Set<Int>) -> PageCache.Reading {
        let next = min(next(after: seq, of: partition), to + 1, seq + PageCache.seqsMax)
        lastNumber += 1
        let seqs = seq...max(seq, next - 1)
        let reading = PageCache.Reading(number: lastNumber, partition: partition, seqs: seqs, loops: loops)
        readings[partition].insert(reading, at: readingIndex(of: seq, in: partition))
        readingCount += 1
        return reading
    }

    /// Removes a read that has ended. Returns it with the loops that wait for it by now.
    mutating func end(_ reading: PageCache.Reading) -> PageCache.Reading {
        readingCount -= 1
        return readings[reading.partition].remove(at: readingIndex(of: reading.seqs.lowerBound, in: reading.partition))
    }

    /// Adds a page, and evicts pages until the limit holds. A page that was used since its last check moves to the end
    /// of the order instead (second chance).
    mutating func keep(_ page: LogPage, of partition: Int, byteLimit: Int) {
        let seq = page.seqs.lowerBound
        pages[partition].insert(PageCache.Kept(page: page), at: index(of: seq, in: partition))
        order.append((partition, seq))
        byteCount += page.costBytes
        while byteCount > byteLimit, let oldest = order.popFirst() {
            let index = index(of: oldest.seq, in: oldest.partition)
            if pages[oldest.partition][index].isWanted {
                pages[oldest.partition][index].isWanted = false
                order.append(oldest)
            } else {
                byteCount -= pages[oldest.partition].remove(at: index).page.costBytes
            }
        }
    }
}
