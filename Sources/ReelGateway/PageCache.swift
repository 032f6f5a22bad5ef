import ReelCore
import ReelLog
import Synchronization

/// Pages of the log for those who catch up behind the rings of a gateway's loops. Each is read once for all who want it
/// at the time, and kept as long as there is room and somebody comes for it. What follows a page is what nobody has
/// read yet, or the next page: no two have a seq in common.
final class PageCache: Sendable {
    /// A read of the log that is under way. The page may end before the seqs that were asked for.
    struct Reading: Sendable {
        fileprivate let number: Int
        let partition: Int
        let seqs: ClosedRange<Seq>
        /// The loops that wait for it.
        fileprivate var loops: Set<Int>

        /// The same for all loops.
        var id: Int { number }
    }

    typealias Outcome = Result<LogPage, LogError>
    typealias News = (reading: Reading, outcome: Outcome)

    /// What is there for a seq.
    enum Found: Sendable {
        case page(LogPage)
        /// A read under way, of whose outcome the loop is told.
        case reading(Reading)
        /// A read that the loop is to do now, with `read`, which tells it the outcome.
        case begun(Reading)
    }

    fileprivate struct Kept {
        let page: LogPage
        /// Somebody came for it since it was read, or since it was spared.
        var isWanted = false
    }

    fileprivate struct State {
        /// By partition, by seq.
        var pages: [[Kept]]
        /// The reads under way, by partition and seq. No two have a seq in common.
        var readings: [[Reading]]
        var readingCount = 0
        /// The pages as they are to be let go of.
        var order = Queue<(partition: Int, seq: Seq)>()
        var byteCount = 0
        var lastNumber = 0
        /// What tells each loop of an outcome.
        var loops: [@Sendable (News) -> Void] = []
    }

    /// A page has at most so many seqs: what a read is waited for, and need not bring.
    static let seqsMax: Seq = 4_096

    private let log: any EventLog
    private let sound: ValidatedRanges
    private let byteLimit: Int
    private let state: Mutex<State>

    /// Of this log. Pages of so many bytes are kept.
    init(_ log: any EventLog, sound: ValidatedRanges, byteLimit: Int) {
        self.log = log
        self.sound = sound
        self.byteLimit = byteLimit
        state = Mutex(
            State(
                pages: [[Kept]](repeating: [], count: log.partitions),
                readings: [[Reading]](repeating: [], count: log.partitions)
            )
        )
    }

    /// Bytes that the kept pages take.
    var byteCount: Int { state.withLock { $0.byteCount } }

    /// The number of a loop, which is told of outcomes from now on, on any thread.
    func join(_ tell: @escaping @Sendable (News) -> Void) -> Int {
        state.withLock { state in
            state.loops.append(tell)
            return state.loops.count - 1
        }
    }

    /// The page that holds the seq, if it is kept.
    func page(at seq: Seq, of partition: Int) -> LogPage? {
        state.withLock { $0.page(at: seq, of: partition) }
    }

    /// Returns the page that holds the seq, or the read under way of it, which this loop then waits for; nil: there is
    /// neither.
    func find(_ seq: Seq, of partition: Int, loop: Int) -> Found? {
        state.withLock { $0.find(seq, of: partition, loop: loop) }
    }

    /// Returns what `find` does, or else begins a read for this loop, of a range that ends at `to`.
    func findOrBegin(_ seq: Seq, to: Seq, of partition: Int, loop: Int) -> Found {
        state.withLock { state in
            state.find(seq, of: partition, loop: loop)
                ?? .begun(state.begin(seq, to: to, of: partition, for: [loop]))
        }
    }

    /// A read of what follows a page, to be begun before somebody wants it: only while nothing else is read, and
    /// what is read ahead is there still when it is wanted. Nil: none.
    func ahead(of page: LogPage, to: Seq, of partition: Int) -> Reading? {
        let seq = page.seqs.upperBound
        guard seq <= to else { return nil }
        return state.withLock { state in
            guard state.readingCount == 0, state.page(at: seq, of: partition) == nil else { return nil }
            return state.begin(seq, to: to, of: partition, for: [])
        }
    }

    /// Reads what was begun, at most so many bytes, and tells all loops that wait for it. What lies behind `end` is
    /// void. Blocks.
    func read(_ reading: Reading, bytes: Int, end: Seq) {
        let outcome = Result { () throws(LogError) in
            try LogPage(log, reading.partition, reading.seqs, bytes: bytes, end: end, sound: sound)
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

    /// The index of the first read that ends at the seq or behind it.
    private func readingIndex(of seq: Seq, in partition: Int) -> Int {
        let readings = readings[partition]
        var (low, high) = (0, readings.count)
        while low < high {
            let middle = (low + high) / 2
            if readings[middle].seqs.upperBound < seq { low = middle + 1 } else { high = middle }
        }
        return low
    }

    /// The index of the first page that ends behind the seq.
    private func index(of seq: Seq, in partition: Int) -> Int {
        let pages = pages[partition]
        var (low, high) = (0, pages.count)
        while low < high {
            let middle = (low + high) / 2
            if pages[middle].page.seqs.upperBound <= seq { low = middle + 1 } else { high = middle }
        }
        return low
    }

    mutating func page(at seq: Seq, of partition: Int) -> LogPage? {
        let index = index(of: seq, in: partition)
        guard index < pages[partition].count, pages[partition][index].page.seqs.contains(seq) else { return nil }
        pages[partition][index].isWanted = true
        return pages[partition][index].page
    }

    /// The first seq behind this one that is read already, or is being read.
    func next(behind seq: Seq, of partition: Int) -> Seq {
        let index = index(of: seq, in: partition)
        let page = index < pages[partition].count ? pages[partition][index].page.seqs.lowerBound : .max
        let reading = readingIndex(of: seq, in: partition)
        return reading < readings[partition].count ? min(page, readings[partition][reading].seqs.lowerBound) : page
    }

    mutating func begin(_ seq: Seq, to: Seq, of partition: Int, for loops: Set<Int>) -> PageCache.Reading {
        let next = min(next(behind: seq, of: partition), to + 1, seq + PageCache.seqsMax)
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

    /// Keeps a page, and lets go of those for which nobody came lately.
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
