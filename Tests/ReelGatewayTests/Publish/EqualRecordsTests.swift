import ReelCore
import Testing

@testable import ReelGateway

/// Tests an event that a client has sent twice within the same millisecond, so that both records have the same bytes.
/// The log has only the second one, because the append of the first one has failed.
@Suite struct EqualRecordsTests {
    private typealias Bench = PublishLedgerTests.Bench
    private let site = Site(high: 1, low: 1)
    private let nack = ["1:0 log_unavailable 1000"]

    /// Returns a ledger with both records. The first one is of connection 1, the second one of connection 2.
    private func published() -> (bench: Bench, first: [PendingRecord], second: [PendingRecord]) {
        var bench = Bench()
        let offer = PublishLedgerTests().offer(site, 0)
        let (first, second) = (bench.publish(offer).append, bench.publish(offer, from: 2).append)
        return (bench, first, second)
    }

    @Test("the record is read, then the first append fails, then the second is reported") func failsFirst() {
        var (bench, first, second) = published()
        #expect(bench.readBack(first[0], site, 0, at: 5).isEmpty)
        #expect(bench.failed(first) == nack)
        #expect(bench.reported(second, at: [5], head: 5) == ["2:0@5"])
        #expect(bench.ledger.count == 0)
    }

    @Test("the record is read, then the second append is reported, then the first fails") func failsLast() {
        var (bench, first, second) = published()
        #expect(bench.readBack(first[0], site, 0, at: 5).isEmpty)
        #expect(bench.reported(second, at: [5], head: 5) == ["2:0@5"])
        #expect(bench.failed(first) == nack)
        #expect(bench.ledger.count == 0)
    }

    @Test("the second append is reported, then the record is read") func isReportedFirst() {
        var (bench, first, second) = published()
        #expect(bench.reported(second, at: [5], head: 4).isEmpty)
        #expect(bench.readBack(second[0], site, 0, at: 5) == ["2:0@5"])
        #expect(bench.read(to: 5) == nil)
        #expect(bench.failed(first) == nack)
        #expect(bench.ledger.count == 0)
    }

    @Test("the record is read, the second append is reported without a seq, then the first fails") func withoutSeq() {
        var (bench, first, second) = published()
        #expect(bench.readBack(first[0], site, 0, at: 5).isEmpty)
        #expect(bench.reported(second).isEmpty)
        #expect(bench.failed(first) == nack + ["2:0@5"])
        #expect(bench.ledger.count == 0)
    }

    @Test("the first append is reported without a seq, the second with one, then the record is read") func promised() {
        var (bench, first, second) = published()
        #expect(bench.reported(first).isEmpty && bench.reported(second, at: [5], head: 4).isEmpty)
        #expect(bench.readBack(second[0], site, 0, at: 5) == ["2:0@5"])
        #expect(bench.read(to: 5) == nil)
    }

    @Test("the second append is reported before the first, and both are in the log") func overtaken() {
        var (bench, first, second) = published()
        #expect(bench.reported(second, at: [5], head: 3).isEmpty)
        #expect(bench.readBack(first[0], site, 0, at: 4).isEmpty)
        #expect(bench.readBack(second[0], site, 0, at: 5) == ["2:0@5"])
        #expect(bench.reported(first, at: [4], head: 5) == ["1:0@4"])
        #expect(bench.read(to: 5) == nil && bench.ledger.count == 0)
    }

    @Test("records that fail together are all nacked") func failTogether() {
        var (bench, first, second) = published()
        #expect(bench.readBack(first[0], site, 0, at: 5).isEmpty)
        #expect(bench.reported(second).isEmpty)
        #expect(bench.failed(first + second) == nack + ["2:0 log_unavailable 1000"])
        #expect(bench.ledger.count == 0)
    }

    @Test("the next event of the same connection is not behind a gap, because the log has the event") func noGap() {
        var bench = Bench()
        let offer = PublishLedgerTests().offer(site, 0)
        let (first, second) = (bench.publish(offer).append, bench.publish(offer).append)
        #expect(bench.readBack(first[0], site, 0, at: 5).isEmpty)
        #expect(bench.failed(first) == nack + ["1:0 gap 0"])
        #expect(bench.reported(second, at: [5], head: 5).isEmpty)
        #expect(bench.publish(PublishLedgerTests().offer(site, 1)).answers.isEmpty)
    }

    @Test("each record is in the log") func both() {
        var (bench, first, second) = published()
        #expect(bench.readBack(first[0], site, 0, at: 5).isEmpty && bench.readBack(second[0], site, 0, at: 6).isEmpty)
        #expect(bench.reported(second, at: [6], head: 6) == ["2:0@6"])
        #expect(bench.reported(first, at: [5], head: 6) == ["1:0@5"])
        #expect(bench.ledger.count == 0)
    }

    @Test("an ack names no earlier copy that another append has written") func ownSeq() {
        var (bench, first, second) = published()
        #expect(bench.readBack(first[0], site, 0, at: 5).isEmpty)
        #expect(bench.failed(first) == nack, "it is in the log all the same")
        #expect(bench.readBack(second[0], site, 0, at: 6).isEmpty)
        #expect(bench.reported(second, at: [6], head: 6) == ["2:0@6"])
    }

    @Test("a report of a seq at which another event was read is a divergence") func diverged() {
        var (bench, first, second) = published()
        #expect(bench.readBack(first[0], site, 0, at: 5).isEmpty)
        #expect(bench.reported(second, at: [4], head: 5) == ["diverged"])
    }

    /// The fate of an append.
    private enum Fate: CaseIterable {
        /// It is written, and reported with its seq, or without.
        case written, writtenWithoutSeq
        /// It fails; or it is written all the same.
        case fails, failsButWritten
        /// The log reports it without a seq, and does not have it.
        case lost

        var isWritten: Bool { self == .written || self == .writtenWithoutSeq || self == .failsButWritten }
    }

    /// Runs all orders in which `count` equal records can be read and reported, for all fates of their appends.
    @Test("equal records are told apart in any order of reads and reports", arguments: [2, 3])
    func anyOrder(count: Int) {
        var fates: [[Fate]] = [[]]
        for _ in 0..<count { fates = fates.flatMap { fates in Fate.allCases.map { fates + [$0] } } }
        for fates in fates {
            // The written records stand in the log in the order of their appends.
            let places = fates.indices.filter { fates[$0].isWritten }
            for order in orders(reads: places.count, reports: Array(0..<count)) { run(fates, places, order) }
        }
    }

    /// A read of the next record of the log, or the report of an append.
    private enum Step { case read, report(Int) }

    private func orders(reads: Int, reports: [Int]) -> [[Step]] {
        if reads == 0, reports.isEmpty { return [[]] }
        var orders: [[Step]] = []
        if reads > 0 { orders += self.orders(reads: reads - 1, reports: reports).map { [.read] + $0 } }
        for report in reports {
            let rest = reports.filter { $0 != report }
            orders += self.orders(reads: reads, reports: rest).map { [.report(report)] + $0 }
        }
        return orders
    }

    private func run(_ fates: [Fate], _ places: [Int], _ order: [Step]) {
        var bench = Bench()
        let offer = PublishLedgerTests().offer(site, 0)
        let records = fates.indices.map { bench.publish(offer, from: $0).append }
        var (answers, head): ([String], Seq) = ([], -1)
        for step in order {
            switch step {
            case .read:
                head += 1
                answers += bench.readBack(records[0][0], site, 0, at: head)
                if let code = bench.read(to: head) { answers.append(code.rawValue) }
            case .report(let index):
                switch fates[index] {
                case .written:
                    let seq = Seq(places.firstIndex(of: index) ?? -1)
                    answers += bench.reported(records[index], at: [seq], head: head)
                case .writtenWithoutSeq, .lost: answers += bench.reported(records[index])
                case .fails, .failsButWritten: answers += bench.failed(records[index])
                }
            }
        }
        let about = "\(fates) \(order): \(answers)"
        #expect(!answers.contains(ErrorCode.diverged.rawValue), "\(about)")
        for (index, fate) in fates.enumerated() {
            let own = answers.filter { $0.hasPrefix("\(index):") }
            switch fate {
            case .written: #expect(own == ["\(index):0@\(places.firstIndex(of: index) ?? -1)"], "\(about)")
            case .fails, .failsButWritten: #expect(own == ["\(index):0 log_unavailable 1000"], "\(about)")
            // It stays unanswered if the log's records count for others; the ledger gives it up later.
            case .writtenWithoutSeq, .lost: #expect(own.count <= 1, "\(about)")
            }
        }
        let open = fates.count { $0 == .writtenWithoutSeq || $0 == .lost }
        #expect(bench.ledger.count <= open, "\(about)")
    }
}
