import EventLogConformance
import ReelCore
import ReelLog
import ReelNode
import TestSupport
import Testing

@testable import ReelGateway

/// Compares the pieces that readers get from the ring, from pages of the log and from a snapshot node's index with
/// those of a plain scan.
@Suite struct EventPiecesTests {
    /// Random records of one partition, in a log, and in the form of the tail.
    private struct Records {
        let log: MemoryLog
        let records: [Batches.Record]
        static let streams = ["a", "b", "sparse"].map { StreamName($0)! }
        static let sites = [Site(high: 1, low: 1), Site(high: 2, low: 2)]

        init(_ count: Int, _ generator: inout SeededNumbers) throws {
            let log = try MemoryLog(partitions: 1)
            var records: [Batches.Record] = []
            for seq in 0..<count {
                let record: Batches.Record
                switch Int.random(in: 0..<20, using: &generator) {
                case 0 where seq > 0: record = .hole
                case 1: record = .void
                case 2: record = .barrier
                default:
                    let isSparse = Int.random(in: 0..<40, using: &generator) == 0
                    let stream = isSparse ? Self.streams[2] : Self.streams[Int.random(in: 0..<2, using: &generator)]
                    let (site, model) = (Self.sites.randomElement(using: &generator)!, ["task", "note"][seq % 2])
                    let text = String(repeating: "x", count: .random(in: 0...300, using: &generator))
                    record = .raw(stream, site, Op(seq), Batches.insert(site, Op(seq), text, model: model))
                }
                records.append(record)
                Self.append(record, to: log)
            }
            (self.log, self.records) = (log, records)
        }

        private static func append(_ record: Batches.Record, to log: MemoryLog) {
            let (key, value): ([UInt8], [UInt8])
            switch record {
            case .hole: return log.leaveHole(0)
            case .raw(let stream, _, _, let bytes): (key, value) = (stream.key, bytes)
            case .barrier: (key, value) = (Array(StreamName.barrierKey.utf8), Barrier.open.value)
            case .void, .event: (key, value) = (Array("x".utf8), Array("no".utf8))
            }
            log.append([LogAppend(key: key, value: value)], to: 0) { _ in }
        }

        /// The records that a plain scan delivers in a range of a query.
        func delivered(_ query: LogQuery) -> [(seq: Seq, value: [UInt8])] {
            var event = ParsedEvent()
            return (query.from...query.to).compactMap { seq in
                switch records[Int(seq)] {
                case .barrier: return (seq, Barrier.open.value)
                case .raw(query.stream, _, _, let value):
                    let isWanted = value.withUnsafeBytes { query.filter?.wants($0, &event) ?? true }
                    return isWanted ? (seq, value) : nil
                case .raw, .event, .void, .hole: return nil
                }
            }
        }

        /// Returns the piece of a query from the answer of a node that has all events, and sends at most `limit` of
        /// them.
        func indexed(_ query: LogQuery, events limit: Int = .max) throws -> EventRange {
            var all = query
            (all.to, all.filter) = (Seq(records.count - 1), nil)
            let found = delivered(all)
            let sent = found.prefix(limit)
            var body = EventRangeBody(from: all.from, head: all.to)
            var range = EventRange(from: all.from, to: sent.count < found.count ? found[sent.count - 1].seq : all.to)
            for (seq, value) in sent { value.withUnsafeBytes { range.append(seq: seq, value: $0) } }
            body.append(range)
            return try EventRange(answer: body.bytes(query.stream, Epoch(7), 0), to: query, epoch: Epoch(7))
        }

        /// The first piece of a query, by a plain scan.
        func piece(_ query: LogQuery) -> EventRange {
            var (range, size) = (EventRange(from: query.from, to: query.to), 0)
            for (seq, value) in delivered(query) {
                let isFull = range.count == query.events || size + value.count + 28 > query.bytes && range.count > 0
                if isFull {
                    range.to = seq - 1
                    return range
                }
                value.withUnsafeBytes { range.append(seq: seq, value: $0) }
                size = range.body.count
            }
            return range
        }

        func query(_ generator: inout SeededNumbers) -> LogQuery {
            let last = Seq(records.count - 1)
            let from = Bool.random(using: &generator) ? 0 : Seq.random(in: 0...last, using: &generator)
            let models = [["task"], ["note"], ["none"]].randomElement(using: &generator)!
            let site = Bool.random(using: &generator) ? Self.sites[0] : nil
            return LogQuery(
                stream: Self.streams.randomElement(using: &generator)!,
                filter: Bool.random(using: &generator) ? EventFilter(models: models, site: site) : nil,
                partition: 0,
                from: from,
                to: Bool.random(using: &generator) ? last : .random(in: from...last, using: &generator),
                bytes: [200, 2_000, 30_000].randomElement(using: &generator)!,
                events: [1, 7, .max].randomElement(using: &generator)!
            )
        }
    }

    /// An index that answers some queries, with some of the events, or not at all.
    private final class SomeIndex: EventIndex {
        private let records: Records
        private let host: HandLoop
        private var numbers: SeededNumbers
        private let node = NodeAnnouncement(
            id: "node",
            role: "snapshot",
            url: "http://127.0.0.1:1",
            advertised: nil,
            build: "0",
            positions: [],
            atMs: 0
        )
        /// The pieces that were found.
        private(set) var pieceCount = 0

        init(_ records: Records, on host: HandLoop, _ numbers: SeededNumbers) {
            (self.records, self.host, self.numbers) = (records, host, numbers)
        }

        func node(for query: LogQuery) -> NodeAnnouncement? { Bool.random(using: &numbers) ? node : nil }

        func ask(
            _ node: NodeAnnouncement,
            for query: LogQuery,
            authorization: String?,
            then: @escaping (EventRange?) -> Void
        ) {
            let limit = Int.random(in: 0..<40, using: &numbers)
            host.offload {
            } then: { [self] _ in
                guard limit > 0 else { return then(nil) }
                do {
                    let piece = try records.indexed(query, events: limit)
                    pieceCount += 1
                    then(piece)
                } catch {
                    Issue.record(error)
                }
            }
        }
    }

    /// A reader that reads a range to its end.
    private final class Reader: EventReader {
        let query: LogQuery
        private(set) var cursor: StreamCursor
        private(set) var pieces: [EventRange] = []
        private(set) var error: ReelError?
        var readState = ReadState.idle
        let account: ReadAccount?
        let access: Access? = nil
        /// False in some turns, so that the reader waits.
        var hasRoom = true
        private let pause: () -> Bool

        init(_ query: LogQuery, _ account: ReadAccount?, pause: @escaping () -> Bool) {
            (self.query, self.account, self.pause) = (query, account, pause)
            let options = ReadOptions(query.filter, hasOutcomes: false)
            cursor = StreamCursor(query.stream, in: 0, after: query.from - 1, options: options)
        }

        var isOver: Bool { error != nil }
        var last: Seq { query.to }
        var limits: (bytes: Int, events: Int) { (query.bytes, query.events) }

        func received(_ piece: EventRange) {
            pieces.append(piece)
            if case .refuse(let error) = cursor.take(piece) { self.error = error }
            hasRoom = !pause()
        }

        func caughtUp() {}
        func failed(_ error: ReelError) { self.error = error }
    }

    @Test("the ring, a page and the index give the same piece as a plain scan") func samePieces() throws {
        try Seeds.run(30) { seed in
            var generator = SeededNumbers(seed)
            let records = try Records(300, &generator)
            defer { records.log.close() }
            var ring = Ring(from: 0, byteLimit: 1 << 30)
            _ = ring.append(Batches.batch(from: 0, records.records))
            let validated = ValidatedRanges(partitions: 1)
            let page = try LogPage(records.log, 0, 0...299, bytes: 1 << 30, end: .max, validated: validated)
            for _ in 0..<20 {
                let query = records.query(&generator)
                let expected = records.piece(query)
                #expect(ring.piece(for: query) == expected, "\(query)")
                var builder = EventRangeBuilder(from: query.from, bytes: query.bytes, events: query.events)
                var filter = FilterRun(query.filter)
                _ = page.extend(&builder, through: &filter, with: query.stream, to: query.to)
                #expect(builder.range == expected, "\(query)")
                #expect(try records.indexed(query) == expected, "\(query)")
            }
        }
    }

    @Test("readers get the same events whatever part of their range the ring, the pages and the index hold")
    func anyMix() throws {
        var indexed = 0
        try Seeds.run(20) { seed in
            var generator = SeededNumbers(seed)
            let records = try Records(400, &generator)
            defer { records.log.close() }
            let host = HandLoop()
            let ringFrom = Int.random(in: 0...399, using: &generator)
            let pageBytes = [1, 20_000, 32 << 20].randomElement(using: &generator)!
            let index = SomeIndex(records, on: host, generator)
            let gateway = GatewayLoop(on: host, over: records.log, from: Seq(ringFrom), index: index) {
                $0.pageBytes = pageBytes
            }
            gateway.received(Batches.batch(from: Seq(ringFrom), Array(records.records[ringFrom...])))
            let accounts = (0..<3).map { _ in ReadAccount() }
            var pauses = generator
            let readers = (0..<30).map { number in
                Reader(records.query(&generator), number.isMultiple(of: 4) ? nil : accounts[number % 3]) {
                    Int.random(in: 0..<3, using: &pauses) == 0
                }
            }
            for reader in readers {
                gateway.reads.read(reader)
                for _ in 0..<Int.random(in: 0..<5, using: &generator) { _ = host.step(&generator) }
            }
            while true {
                while host.step(&generator) {}
                let paused = readers.filter { $0.readState == .waitsForRoom }
                if paused.isEmpty { break }
                for reader in paused {
                    reader.hasRoom = true
                    gateway.reads.roomFreed(reader)
                }
            }
            for reader in readers { check(reader, records, ringFrom: Seq(ringFrom)) }
            #expect(accounts.allSatisfy { $0.operations == 0 && $0.readers == 0 })
            indexed += index.pieceCount
        }
        #expect(indexed > 0 || TestSeed.given != nil)
    }

    private func check(_ reader: Reader, _ records: Records, ringFrom: Seq) {
        var rest = reader.query
        for piece in reader.pieces {
            let expected = records.piece(rest)
            #expect(piece.from == rest.from && piece.to >= piece.from && piece.to <= expected.to, "\(reader.query)")
            if rest.from >= ringFrom { #expect(piece == expected) }
            var part = rest
            part.to = piece.to
            var whole = EventRange(from: part.from, to: part.to)
            for (seq, value) in records.delivered(part) { value.withUnsafeBytes { whole.append(seq: seq, value: $0) } }
            #expect(piece == whole, "\(reader.query)")
            rest.from = piece.to + 1
        }
        #expect(reader.error == nil && rest.from == reader.query.to + 1, "\(reader.query)")
        #expect(reader.readState == .idle)
    }
}
