import Foundation
import ReelCore
import ReelLog
import ReelNet
import Testing

@testable import ReelGateway

/// Tests that a gateway knows the beginning and the end of the epoch, even where it has not read those records.
@Suite(.timeLimit(.minutes(15))) struct EpochTests {
    private let todo = StreamName("todo")!
    private let site = Site(high: 0x11, low: 0x22)
    private let next = Epoch(0x77)

    /// Returns a log of one partition with these records. Each record has the witness of the record `lag` seqs before
    /// it; with 0 there are no witnesses.
    private func log(_ records: [LogAppend], lag: Seq) async throws -> MemoryLog {
        let log = try MemoryLog(partitions: 1)
        for (index, record) in records.enumerated() {
            var record = record
            let known = Seq(index) - lag
            if lag > 0, known >= 0 {
                let batch = try log.read(0, from: known, to: known, bytes: 1)
                record.witness = batch.entry(at: known).map { batch.witness(of: $0) }
            }
            _ = try await withCheckedThrowingContinuation { continuation in
                log.append([record], to: 0) { continuation.resume(with: $0) }
            }
        }
        return log
    }

    private func events(_ ops: Range<Op>) -> [LogAppend] {
        ops.map { LogAppend(key: todo.key, value: Batches.value(site, $0, "x")) }
    }

    private func barrier(_ barrier: Barrier) -> LogAppend {
        LogAppend(key: Array(StreamName.barrierKey.utf8), value: barrier.value)
    }

    private func seed(_ line: String) -> LogAppend {
        LogAppend(key: todo.key, value: Array(#"{"line":\#(line),"type":"seed"}"#.utf8))
    }

    private func start(_ log: any EventLog, records: Int64) throws -> WarmStart {
        try WarmStart.find(in: log, bounds: [log.bounds(0)], records: records)[0]
    }

    @Test("a starting gateway skips only records that a later record's witness confirms") func skipsConfirmedRecords()
        async throws
    {
        #expect(try start(try await log(events(0..<40), lag: 1), records: 10).from == 30)
        #expect(try start(try await log(events(0..<40), lag: 9), records: 10).from == 30)
        #expect(try start(try await log(events(0..<40), lag: 15), records: 10).from == 25)
        #expect(try start(try await log(events(0..<40), lag: 0), records: 10).from == 0, "nobody vouches")
        #expect(try start(try await log([], lag: 0), records: 10).from == 0)
        let ended = events(0..<20) + [barrier(.end(next))] + events(20..<40)
        #expect(try start(try await log(ended, lag: 1), records: 1_000).from == 0)
        let foreign = LogAppend(key: todo.key, value: Array("text".utf8), witness: Witness(seq: 29, hash: 1))
        let copied = try await log(events(0..<40), lag: 15)
        copied.append([foreign], to: 0) { _ in }
        #expect(try start(copied, records: 10).from == 25, "a record without effect vouches for nothing")
        let trimmed = try await log(events(0..<40), lag: 0)
        trimmed.trim(0, before: 25)
        #expect(try start(trimmed, records: 10).from == 25)
        trimmed.trim(0, before: 40)
        #expect(try start(trimmed, records: 10).from == 40, "nothing is left to read")
    }

    @Test("a gateway that starts long after an end barrier knows that the epoch has ended") func findsEpochEnd()
        async throws
    {
        // The gateways that wrote the records after the end had not read the end yet.
        let log = try await log(events(0..<20) + [barrier(.end(next))], lag: 1)
        let before = try log.read(0, from: 19, to: 19, bytes: 1)
        let witness = try #require(before.entry(at: 19).map { before.witness(of: $0) })
        for record in events(20..<60) {
            log.append([LogAppend(key: record.key, value: record.value, witness: witness)], to: 0) { _ in }
        }
        try await LiveGateway.with(log, { $0.warmRecords = 5 }) { live in
            try await live.state(becomes: "ended")
            let body = #"{"events":[\#(String(decoding: Sent.insert(site, 60, "a"), as: UTF8.self))]}"#
            let answer = try await live.ask("POST", "/v1/streams/todo/events", body: body)
            #expect(answer.status == 409)
            #expect(String(decoding: answer.body, as: UTF8.self).contains(#""epoch":"\#(next)""#))
            #expect(live.logLines("the epoch has ended").count == 1)
            let read = String(decoding: try await live.get("/v1/streams/todo/events?after=15").body, as: UTF8.self)
            #expect(read.contains(#""seq":20"#) && !read.contains(#""seq":21"#), "what lies behind the end is void")
        }
    }

    @Test("the state that an epoch begins with is no answer in events", arguments: [1_000, 2]) func theStateThatAn(
        warmRecords: Int64
    ) async throws {
        let seeds = [
            seed(#"{"end":-1,"op":4,"site":"\#(site)"}"#),
            seed(#"{"fields":{"t":["x","\#(site)"]},"object":["task","a"]}"#),
        ]
        let log = try await log(seeds + [barrier(.open)] + events(5..<9), lag: 1)
        try await LiveGateway.with(log, { $0.warmRecords = warmRecords }) { live in
            let socket = try await live.connect()
            socket.send(.subscribe(.init(stream: todo, position: .after(2), epoch: log.epoch)))
            #expect(try await socket.events(of: todo, partition: 0, after: 2, through: 6).count == 4)
            socket.send(.subscribe(.init(stream: todo, position: .after(-1))))
            let error = try await socket.nextError()
            #expect(error.error.code == .truncated && error.first ?? 0 > 0)
            #expect(try await live.get("/v1/streams/todo/events").status == 410)
            #expect(try await live.metric(#"reel_gateway_void_records_total{reason="late_seed"}"#) == 0)
            // The site's op 0 lies in the earlier epoch. No node of this epoch can prove that
            // the new event differs from it.
            socket.send(.publish(.init(stream: todo, epoch: nil, events: [Sent.insert(site, 0, "b")])))
            #expect(try await socket.nextAck().acks.map(\.op) == [0])
            socket.send(.publish(.init(stream: todo, epoch: nil, events: [Sent.insert(site, 0, "c")])))
            #expect(try await socket.nextAck().acks.map(\.op) == [0])
        }
    }

    @Test("a gateway that starts in the midst of the seeds takes them for what they are")
    func startInSeeds() async throws {
        let seeds = (0..<40).map { seed(#"{"end":-1,"op":4,"site":"\#(Site(high: 1, low: UInt64($0)))"}"#) }
        let log = try await log(seeds + [barrier(.open)] + events(5..<9), lag: 1)
        let start = try start(log, records: 20)
        #expect(start == WarmStart(from: 25, hasSeeds: true, isInSeeds: true))
        #expect(try self.start(log, records: 5) == WarmStart(from: 40, hasSeeds: true, isInSeeds: false))
        // A device may subscribe before the gateway has read any record, and no event reports the seeds to it.
        #expect(try self.start(log, records: 1_000) == WarmStart(from: 0, hasSeeds: true, isInSeeds: true))
        try await LiveGateway.with(log, { $0.warmRecords = 20 }) { live in
            let socket = try await live.connect()
            socket.send(.subscribe(.init(stream: todo, position: .after(40), epoch: log.epoch)))
            #expect(try await socket.events(of: todo, partition: 0, after: 40, through: 44).count == 4)
            #expect(try await live.metric(#"reel_gateway_void_records_total{reason="late_seed"}"#) == 0)
            // The gateway knows the whole range of seeds now, and a position inside the range is invalid.
            socket.send(.subscribe(.init(stream: todo, position: .after(30), epoch: log.epoch)))
            let error = try await socket.nextError().error
            #expect(error.code == .truncated, "\(error)")
        }
    }

    @Test("a gateway treats records after an end barrier as void when it reads the log") func voidsRecordsAfterEnd()
        async throws
    {
        let log = try await log(events(0..<20) + [barrier(.end(next))] + events(20..<60), lag: 1)
        try await LiveGateway.with(log, { $0.ringBytes = 1 }) { live in
            try await live.state(becomes: "ended")
            let socket = try await live.connect()
            socket.send(.subscribe(.init(stream: todo, position: .after(18), epoch: log.epoch)))
            #expect(try await socket.events(of: todo, partition: 0, after: 18, through: 60).map(\.seq) == [19, 20])
        }
    }
}
