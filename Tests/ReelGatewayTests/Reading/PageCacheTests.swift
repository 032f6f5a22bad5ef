import EventLogConformance
import ReelCore
import ReelLog
import ReelNode
import Synchronization
import TestSupport
import Testing

@testable import ReelGateway

/// Tests the cache of pages for catch-up: every client gets the same events, and the log is read once for all.
@Suite struct PageCacheTests {
    /// The loops of a gateway that has read a whole log and kept no record.
    private struct Scene {
        let log: HeldLog
        let context: GatewayContext
        let loops: [(host: HandLoop, gateway: GatewayLoop)]

        init(_ memory: MemoryLog, end: EpochEnd? = nil, pageBytes: Int = 32 << 20) throws {
            log = HeldLog(memory)
            var settings = GatewaySettings()
            settings.node.loops = 2
            settings.pageBytes = pageBytes
            let bounds = try (0..<memory.partitions).map { try memory.bounds($0) }
            context = GatewayContext(
                nodeID: "n",
                log: log,
                number: 0,
                bounds: bounds,
                starts: bounds.map { WarmStart(from: $0.last + 1) },
                settings: settings,
                logger: Logger { _ in },
                metrics: Metrics(),
                state: nil
            )
            if let end {
                let seqs = end.seq..<bounds[0].last + 1
                let batch = RecordBatch(partition: 0, empty: seqs)
                context.read(TailBatch(records: batch, seqs: seqs, kinds: [], streams: [], end: end))
            }
            let context = context
            loops = (0..<2).map { index in
                let host = HandLoop()
                return (host, GatewayLoop(on: host, index: index, context: context, from: bounds.map { $0.last + 1 }))
            }
        }

        /// Runs both loops until neither has work.
        func run(_ generator: inout SeededNumbers) {
            var isBusy = true
            while isBusy {
                isBusy = false
                for loop in loops.shuffled(using: &generator) { isBusy = loop.host.step(&generator) || isBusy }
            }
        }
    }

    /// A client that reads a range to its end.
    private final class Reader: EventReader {
        let query: LogQuery
        private let gateway: GatewayLoop
        private(set) var cursor: StreamCursor
        var readState = ReadState.idle
        let account: ReadAccount?
        private(set) var chunks: [EventRange] = []
        private(set) var error: ReelError?

        init(_ query: LogQuery, on gateway: GatewayLoop, account: ReadAccount? = nil) {
            (self.query, self.gateway, self.account) = (query, gateway, account)
            let options = ReadOptions(query.filter, hasOutcomes: false)
            cursor = StreamCursor(query.stream, in: query.partition, after: query.from - 1, options: options)
        }

        let access: Access? = nil
        let hasRoom = true
        var isOver: Bool { error != nil }
        var last: Seq { query.to }
        var limits: (bytes: Int, events: Int) { (query.bytes, query.events) }

        func resume() { gateway.reads.read(self) }

        func received(_ piece: EventRange) {
            chunks.append(piece)
            if case .refuse(let error) = cursor.take(piece) { failed(error) }
        }

        func caughtUp() {}
        func failed(_ error: ReelError) { self.error = error }
    }

    private let streams = ["a", "b", "sparse", "a-stream-of-a-longer-name"].map { StreamName($0)! }
    private let sites = [Site(high: 1, low: 1), Site(high: 2, low: 2)]

    private func append(_ records: [LogAppend], to log: MemoryLog, _ partition: Int = 0) {
        log.append(records, to: partition) { _ in }
    }

    private func event(_ number: Seq, _ stream: StreamName, _ generator: inout SeededNumbers) -> LogAppend {
        let model = ["task", "note"].randomElement(using: &generator)!
        let text = String(repeating: "x", count: .random(in: 0...300, using: &generator))
        let site = sites.randomElement(using: &generator)!
        return LogAppend(key: stream.key, value: Batches.insert(site, number, text, model: model))
    }

    /// Fills a log with every kind of record. Returns the end of the epoch, if the log has one.
    private func fill(_ log: MemoryLog, _ count: Seq, _ generator: inout SeededNumbers) throws -> EpochEnd? {
        let barrierKey = Array(StreamName.barrierKey.utf8)
        if Bool.random(using: &generator) {
            let seeds = (0..<Int.random(in: 1...20, using: &generator)).map { number in
                let value = #"{"line":{"end":-1,"op":4,"site":"\#(Site(high: 1, low: UInt64(number)))"},"type":"seed"}"#
                return LogAppend(key: streams[0].key, value: Array(value.utf8))
            }
            append(seeds, to: log)
            append([LogAppend(key: barrierKey, value: Barrier.open.value)], to: log)
        }
        let endSeq = Bool.random(using: &generator) ? Seq.random(in: count / 2..<count, using: &generator) : .max
        var end: EpochEnd?
        var isTidy = true
        while try log.bounds(0).last < count {
            let seq = try log.bounds(0).last + 1
            if seq >= endSeq, end == nil {
                end = EpochEnd(seq: seq, next: Epoch(7))
                append([LogAppend(key: barrierKey, value: Barrier.end(Epoch(7)).value)], to: log)
                continue
            }
            if seq % 50 == 0 { isTidy = Bool.random(using: &generator) }
            switch isTidy ? 0 : Int.random(in: 0..<12, using: &generator) {
            case 1: log.leaveHole(0)
            case 2: append([LogAppend(key: streams[0].key, value: Array("{}".utf8))], to: log)
            case 3: append([LogAppend(key: Array("~other".utf8), value: Array("{}".utf8))], to: log)
            case 4: append([LogAppend(key: barrierKey, value: Barrier.open.value)], to: log)
            case 5: append([LogAppend(key: barrierKey, value: Array("{}".utf8))], to: log)
            default:
                let isSparse = Int.random(in: 0..<60, using: &generator) == 0
                let stream = isSparse ? streams[2] : streams[[0, 1, 3].randomElement(using: &generator)!]
                append([event(seq, stream, &generator)], to: log)
            }
        }
        return end
    }

    /// Returns the events of a stream, found by a plain scan.
    private func truth(_ log: MemoryLog, _ stream: StreamName, _ filter: EventFilter?) throws -> [DeliveredEvent] {
        var rules = PartitionRules(partition: 0, of: 1)
        var found: [DeliveredEvent] = []
        var event = ParsedEvent()
        var expected: Seq = 0
        try log.scan(0, from: 0) { batch in
            for entry in batch.entries {
                if entry.seq > expected { rules.hole() }
                expected = entry.seq + 1
                batch.withRecord(entry) { key, value in
                    let isOurs = stream.key.withUnsafeBytes { $0.equals(key) }
                    switch rules.read(key: key, value: value, into: &event) {
                    case .event where isOurs && filter?.wants(event, value) ?? true: break
                    case .barrier: break
                    default: return
                    }
                    found.append(DeliveredEvent(seq: entry.seq, value: Array(value)))
                }
            }
        }
        return found
    }

    private func body(_ events: ArraySlice<DeliveredEvent>) -> [UInt8] {
        var chunk = EventRange(from: 0, to: 0)
        for event in events { event.value.withUnsafeBytes { chunk.append(seq: event.seq, value: $0) } }
        return chunk.body
    }

    @Test("every reader receives the events that a plain scan finds", arguments: 0..<20) func matchesPlainScan(
        _ turn: Int
    ) throws {
        let seed = TestSeed.value &+ UInt64(turn)
        var generator = SeededNumbers(seed)
        let log = try MemoryLog(partitions: 1)
        defer { log.close() }
        let end = try fill(log, 600, &generator)
        let pageBytes = [1, 20_000, 32 << 20].randomElement(using: &generator)!
        let scene = try Scene(log, end: end, pageBytes: pageBytes)
        let last = try log.bounds(0).last
        let readers = (0..<40).map { _ in
            let from = Bool.random(using: &generator) ? 0 : Seq.random(in: 0...last, using: &generator)
            let models = [["task"], ["note"], ["none"]].randomElement(using: &generator)!
            let site = Bool.random(using: &generator) ? sites[0] : nil
            let query = LogQuery(
                stream: streams.randomElement(using: &generator)!,
                filter: Bool.random(using: &generator) ? EventFilter(models: models, site: site) : nil,
                partition: 0,
                from: from,
                to: Bool.random(using: &generator) ? last : .random(in: from...last, using: &generator),
                bytes: [200, 2_000, 30_000].randomElement(using: &generator)!,
                events: [1, 7, .max].randomElement(using: &generator)!
            )
            return Reader(query, on: scene.loops.randomElement(using: &generator)!.gateway)
        }
        for reader in readers {
            reader.resume()
            if Bool.random(using: &generator) { scene.run(&generator) }
        }
        scene.run(&generator)
        for reader in readers {
            let query = reader.query
            var events = try truth(log, query.stream, query.filter)[...].drop { $0.seq < query.from }
            var next = query.from
            for chunk in reader.chunks {
                try #require(chunk.from == next && chunk.to >= next, "seed \(seed), \(query)")
                next = chunk.to + 1
                let wanted = events.prefix { $0.seq <= chunk.to }
                events = events.dropFirst(wanted.count)
                #expect(chunk.count == wanted.count && chunk.body == body(wanted), "seed \(seed), \(query)")
                #expect(chunk.count <= query.events && (chunk.count <= 1 || chunk.body.count <= query.bytes))
            }
            #expect(next == query.to + 1 && reader.error == nil, "seed \(seed), \(query)")
        }
        if pageBytes == 32 << 20 {
            let read = scene.log.rangesRead.flatMap(Array.init)
            #expect(read.count == Set(read).count, "seed \(seed): no seq is read twice")
        } else {
            #expect(scene.context.pages.byteCount <= pageBytes)
        }
    }

    @Test("the page cache reads a range once for all readers") func sharesRangeReads() throws {
        var generator = SeededNumbers(1)
        let log = try MemoryLog(partitions: 1)
        defer { log.close() }
        append((0..<20_000).map { event(Seq($0), streams[$0 % 2], &generator) }, to: log)
        let scene = try Scene(log)
        let readers = (0..<200).map { index in
            let query = LogQuery(
                stream: StreamName("s\(index)")!,
                partition: 0,
                from: 0,
                to: 19_999,
                bytes: 1 << 20,
                events: .max
            )
            return Reader(query, on: scene.loops[index % 2].gateway)
        }
        for reader in readers { reader.resume() }
        scene.run(&generator)
        for reader in readers {
            #expect(reader.chunks.last?.to == 19_999 && reader.chunks.allSatisfy { $0.count == 0 })
        }
        let ranges = scene.log.rangesRead
        #expect(ranges.reduce(0) { $0 + $1.count } == 20_000 && ranges.count <= 20, "\(ranges)")
        let meters = scene.context.meters
        #expect(meters.pagesRead.value == ranges.count && meters.pagesJoined.value > 0)
    }

    @Test("a read that a seq belongs to is found as in a list of all reads")
    func foundAsInAList() throws {
        for seed in 0..<50 as Range<UInt64> {
            var generator = SeededNumbers(seed)
            let log = try MemoryLog(partitions: 2)
            defer { log.close() }
            let pages = PageCache(log, byteLimit: 0)
            let loop = pages.join { _ in }
            var list: [PageCache.Reading] = []
            for _ in 0..<300 {
                let partition = Int.random(in: 0..<2, using: &generator)
                let seq = Seq.random(in: 0..<100_000, using: &generator)
                let known = list.first { $0.partition == partition && $0.seqs.contains(seq) }
                switch pages.find(seq, of: partition, loop: loop) {
                case .reading(let reading): #expect(reading.id == known?.id, "seed \(seed)")
                case .page, .begun: Issue.record("seed \(seed): no page is kept, and none was to be begun")
                case nil:
                    #expect(known == nil, "seed \(seed)")
                    let to = seq + Seq.random(in: 0..<2_000, using: &generator)
                    guard case .begun(let reading) = pages.findOrBegin(seq, to: to, of: partition, loop: loop) else {
                        Issue.record("seed \(seed): nothing was begun")
                        continue
                    }
                    #expect(reading.seqs.lowerBound == seq && reading.seqs.upperBound <= to)
                    #expect(!list.contains { $0.partition == partition && $0.seqs.overlaps(reading.seqs) })
                    list.append(reading)
                }
                if Int.random(in: 0..<4, using: &generator) == 0, !list.isEmpty {
                    let ended = list.remove(at: .random(in: 0..<list.count, using: &generator))
                    pages.read(ended, bytes: 1, end: .max)
                }
            }
        }
    }

    @Test("a read error reaches all waiting readers and is not cached") func errorReachesAllReaders() throws {
        var generator = SeededNumbers(1)
        let log = try MemoryLog(partitions: 1)
        defer { log.close() }
        append((0..<100).map { event($0, streams[0], &generator) }, to: log)
        let scene = try Scene(log)
        func read(_ from: Seq) -> Reader {
            let query = LogQuery(stream: streams[0], partition: 0, from: from, to: 99, bytes: 1 << 20, events: .max)
            let reader = Reader(query, on: scene.loops[0].gateway)
            reader.resume()
            return reader
        }
        log.lose(0, LogError(.logUnavailable, "it is away"))
        let readers = [read(0), read(1), read(50)]
        scene.run(&generator)
        for reader in readers { #expect(reader.error?.code == .logUnavailable) }
        #expect(scene.log.reads == 1)
        log.lose(0, nil)
        let again = read(0)
        scene.run(&generator)
        #expect(again.chunks.map(\.to) == [99] && again.error == nil)
    }

    @Test("a reader at the log's first seq receives no truncation error of another reader") func firstSeqIsReadable()
        throws
    {
        var generator = SeededNumbers(1)
        let log = try MemoryLog(partitions: 1)
        defer { log.close() }
        append((0..<100).map { event($0, streams[0], &generator) }, to: log)
        let scene = try Scene(log)
        log.trim(0, before: 40)
        let readers = [10, 39, 40, 41].map { (from: Seq) in
            let query = LogQuery(stream: streams[0], partition: 0, from: from, to: 99, bytes: 1 << 20, events: .max)
            return Reader(query, on: scene.loops[0].gateway)
        }
        for reader in readers { reader.resume() }
        scene.run(&generator)
        #expect(readers.map { $0.error?.code } == [.truncated, .truncated, nil, nil])
        #expect(readers.map { $0.chunks.last?.to } == [nil, nil, 99, 99])
    }

    @Test("the page cache keeps a requested page longer") func keepsRequestedPages() throws {
        var generator = SeededNumbers(1)
        let log = try MemoryLog(partitions: 1)
        defer { log.close() }
        append((0..<6 * PageCache.seqsMax).map { event($0, streams[0], &generator) }, to: log)
        let scene = try Scene(log, pageBytes: 4 << 20)
        func read(_ page: Seq) -> Int {
            let from = page * PageCache.seqsMax
            let query = LogQuery(
                stream: streams[2],
                partition: 0,
                from: from,
                to: from + PageCache.seqsMax - 1,
                bytes: 1 << 20,
                events: .max
            )
            let before = scene.log.reads
            Reader(query, on: scene.loops[0].gateway).resume()
            scene.run(&generator)
            return scene.log.reads - before
        }
        #expect(scene.context.pages.byteCount == 0)
        for page in 0..<5 as Range<Seq> {
            #expect(read(page) > 0)
            #expect(read(0) == 0, "it is asked for again and again")
        }
        #expect(scene.context.pages.byteCount <= 4 << 20)
    }

    @Test("the cache of validated ranges is bounded") func boundsValidatedRanges() {
        let sound = ValidatedRanges(partitions: 2)
        for seq in stride(from: 0, to: 10_000, by: 2) as StrideTo<Seq> { sound.add(seq..<seq + 1, of: 1) }
        #expect(!sound.contains(0..<1, of: 1), "it was let go of")
        #expect(sound.contains(9_998..<9_999, of: 1))
        #expect(!sound.contains(9_998..<9_999, of: 0))
    }
}
