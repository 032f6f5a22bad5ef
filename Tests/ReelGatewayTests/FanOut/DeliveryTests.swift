import EventLogConformance
import ReelCore
import ReelLog
import ReelNet
import ReelNode
import Synchronization
import TestSupport
import Testing

@testable import ReelGateway

/// Tests catch-up, fetches and lag, on a log in memory with more records than the ring holds.
@Suite(.timeLimit(.minutes(15))) struct DeliveryTests {
    let todo = StreamName("todo")!
    let note = StreamName("note")!
    let site = Site(high: 1, low: 1)

    /// Returns a log of one partition with `count` events, every third of which is of another stream.
    func log(_ count: Int, text: String = "x") async throws -> MemoryLog {
        let log = try MemoryLog(partitions: 1)
        let records = (0..<count).map { index in
            LogAppend(
                key: index % 3 == 2 ? note.key : todo.key,
                value: Batches.value(site, Op(index), text, base: Seq(index) - 1)
            )
        }
        try await append(records, to: log)
        return log
    }

    func append(_ records: [LogAppend], to log: any EventLog) async throws {
        try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Void, any Error>) in
            log.append(records, to: 0) { continuation.resume(with: $0.map { _ in () }) }
        }
    }

    func seqs(_ count: Int, after: Seq = -1) -> [Seq] {
        (0..<Seq(count)).filter { $0 % 3 != 2 && $0 > after }
    }

    @Test("a subscription catches up from the log and then is live") func aSubscriptionCatchesUp() async throws {
        // The ring keeps at least the last batch of the tail, which has at most 1 MiB.
        let log = try await log(5_000, text: String(repeating: "x", count: 500))
        try await LiveGateway.with(
            log,
            {
                $0.warmRecords = 100
                $0.ringBytes = 50_000
                $0.frameBytes = 20_000
            }
        ) { live in
            let (all, some, new) = (try await live.connect(), try await live.connect(), try await live.connect())
            all.send(.subscribe(.init(stream: todo, position: .after(-1))))
            some.send(.subscribe(.init(stream: todo, position: .after(1_234), epoch: log.epoch)))
            new.send(.subscribe(.init(stream: todo, position: .now)))
            #expect(try await new.nextSubscribed().after == 4_999)
            #expect(
                try await all.events(of: todo, partition: 0, after: -1, through: 4_999).map(\.seq) == seqs(5_000)
            )
            try await append(
                [LogAppend(key: todo.key, value: Batches.value(site, 5_000, "x", base: 4_999))],
                to: log
            )
            #expect(
                try await some.events(of: todo, partition: 0, after: 1_234, through: 5_000).map(\.seq)
                    == seqs(5_000, after: 1_234) + [5_000]
            )
            #expect(try await new.events(of: todo, partition: 0, after: 4_999, through: 5_000).map(\.seq) == [5_000])
            #expect(try await all.events(of: todo, partition: 0, after: 4_999, through: 5_000).map(\.seq) == [5_000])
            #expect(try await live.metric(#"reel_gateway_caught_up_events_total{source="log"}"#) ?? 0 > 1_000)
        }
    }

    @Test("each subscription continues from its own position after any number of changes")
    func continuesFromOwnPosition()
        async throws
    {
        let seed = TestSeed.value
        var random = SeededNumbers(seed)
        let log = try await log(3_000)
        try await LiveGateway.with(
            log,
            {
                $0.ringBytes = 100_000
                $0.frameBytes = 20_000
            }
        ) { live in
            let socket = try await live.connect()
            for _ in 0..<60 {
                if Bool.random(using: &random) {
                    socket.send(.unsubscribe(todo))
                } else {
                    let after = Seq.random(in: 0..<2_999, using: &random)
                    socket.send(.subscribe(.init(stream: todo, position: .after(after), epoch: log.epoch)))
                }
            }
            socket.send(.subscribe(.init(stream: todo, position: .after(1_000), epoch: log.epoch)))
            socket.send(.fetch(.init(stream: todo, epoch: log.epoch, ranges: [0...2_999])), ref: "1")
            // Both continue at the client's pace. Once both have ended, the test checks the order of the frames.
            try await eventually("the end of both") {
                let heard = socket.heard
                guard let last = heard.lastIndex(where: \.isSubscribed) else { return false }
                return heard.contains { $0.isEnd(at: 2_999) } && heard[last...].contains { $0.isProof(of: 2_999) }
            }
            var proven: Seq?
            for frame in socket.heard where frame.ref == nil {
                switch frame.body {
                case .subscribed(let subscribed): proven = subscribed.after
                case .unsubscribed: proven = nil
                case .events(let events):
                    #expect(proven.map { $0 + 1 } == events.from, "seed \(seed)")
                    proven = events.to
                case .upto(_, let seq):
                    if let last = proven { proven = max(last, seq) }
                default: break
                }
            }
            #expect(proven == 2_999)
        }
    }

    @Test("a fetch returns frames that together cover the requested ranges") func fetchCoversRanges() async throws {
        let log = try await log(3_000)
        try await LiveGateway.with(
            log,
            {
                $0.warmRecords = 10
                $0.frameBytes = 10_000
            }
        ) { live in
            let socket = try await live.connect()
            let ranges: [ClosedRange<Seq>] = [10...14, 30...30, 2_000...2_999]
            socket.send(.fetch(.init(stream: todo, epoch: log.epoch, ranges: ranges)), ref: "9")
            var covered: [Seq] = []
            var events: [Seq] = []
            while covered.count < 1_006 {
                let frame = try await socket.next { if case .events = $0.body { true } else { false } }
                guard case .events(let part) = frame.body else { return }
                #expect(frame.ref == Array("9".utf8))
                covered += Array(part.from...part.to)
                events += part.events.map(\.seq)
            }
            #expect(covered == ranges.flatMap(Array.init))
            #expect(events == ranges.flatMap(Array.init).filter { $0 % 3 != 2 })
        }
    }

    @Test("a slow client receives lagged and the other clients continue") func slowClientLags() async throws {
        let log = try MemoryLog(partitions: 1)
        try await LiveGateway.with(
            log,
            {
                ($0.sendQueueBytes, $0.paceBytes) = (300_000, 100_000)
                // Each frame holds one event. So during catch-up the unsent bytes stay below the limit at which
                // an answer closes the connection.
                $0.frameBytes = 200_000
                // A paused socket does not answer pings.
                $0.pingMs = 3_600_000
            }
        ) { live in
            let (slow, fast, writer) = (try await live.connect(), try await live.connect(), try await live.connect())
            for socket in [slow, fast] {
                socket.send(.subscribe(.init(stream: todo, position: .after(-1))))
                _ = try await socket.nextSubscribed()
            }
            slow.pause()
            let text = String(repeating: "x", count: 100_000)
            var proven: Seq = -1
            // The kernels buffer an unknown number of bytes for the slow client, so the test publishes until it lags.
            var rest = 10
            while rest > 0 {
                let op = Op(proven + 1)
                writer.send(.publish(.init(stream: todo, events: [Sent.insert(site, op, "a\(op)", text)])))
                let seq = try await writer.nextAck().acks[0].seq
                #expect(try await fast.events(of: todo, partition: 0, after: proven, through: seq).count == 1)
                proven = seq
                if try await live.metric("reel_gateway_lagged_total") == 1 { rest -= 1 }
                try #require(proven < 1_000, "nobody lags")
            }
            slow.resume()
            let frame = try await slow.next { if case .lagged = $0.body { true } else { false } }
            guard case .lagged(let stream, let seq, _) = frame.body else { return }
            #expect(stream == todo)
            let before = try await slow.events(of: todo, partition: 0, after: -1, through: seq)
            #expect(before.map(\.seq) == Array(0...seq), "all up to what it says was sent")
            slow.send(.subscribe(.init(stream: todo, position: .after(seq), epoch: log.epoch)))
            _ = try await slow.nextSubscribed()
            let missed = try await slow.events(of: todo, partition: 0, after: seq, through: proven)
            #expect(missed.map(\.seq) == Array((seq + 1)...proven))
        }
    }

    @Test("the gateway answers a request for trimmed records with truncated and the first seq") func reportsFirstSeq()
        async throws
    {
        let log = try await log(100)
        log.trim(0, before: 50)
        try await LiveGateway.with(log) { live in
            let socket = try await live.connect()
            socket.send(.subscribe(.init(stream: todo, position: .after(-1))))
            socket.send(.fetch(.init(stream: todo, epoch: log.epoch, ranges: [40...60])))
            for _ in 0..<2 {
                let error = try await socket.nextError()
                #expect(error.error.code == .truncated && error.first == 50)
            }
            let answer = try await live.get("/v1/streams/todo/events")
            #expect(answer.status == 410)
            #expect(String(decoding: answer.body, as: UTF8.self).contains(#""first":50"#))
            socket.send(.subscribe(.init(stream: todo, position: .after(49), epoch: log.epoch)))
            #expect(try await socket.nextSubscribed().first == 50)
        }
    }

    @Test("a log that was trimmed up to its end is read from there on") func aLogThatWas() async throws {
        let log = try await log(100)
        log.trim(0, before: 100)
        try await LiveGateway.with(log) { live in
            let (reader, writer) = (try await live.connect(), try await live.connect())
            reader.send(.subscribe(.init(stream: todo, position: .after(-1))))
            let error = try await reader.nextError()
            #expect(error.error.code == .truncated && error.first == 100)
            reader.send(.subscribe(.init(stream: todo, position: .after(99), epoch: log.epoch)))
            let subscribed = try await reader.nextSubscribed()
            #expect(subscribed.first == 100 && subscribed.head == 99)
            writer.send(.publish(.init(stream: todo, events: [Sent.insert(site, 100, "a")])))
            #expect(try await writer.nextAck().acks.map(\.seq) == [100])
            #expect(try await reader.events(of: todo, partition: 0, after: 99, through: 100).map(\.seq) == [100])
        }
    }

    @Test("another hash of the last event is diverged") func anotherHashOfThe() async throws {
        let log = try await log(10)
        try await LiveGateway.with(log) { live in
            let socket = try await live.connect()
            let hash = FNV1a.record(todo, Batches.value(site, 6, "x", base: 5))
            socket.send(
                .subscribe(
                    .init(stream: todo, position: .after(7), epoch: log.epoch, last: .init(seq: 6, hash: hash))
                )
            )
            _ = try await socket.nextSubscribed()
            socket.send(
                .subscribe(.init(stream: todo, position: .after(7), epoch: log.epoch, last: .init(seq: 6, hash: 1)))
            )
            #expect(try await socket.nextError().error.code == .diverged)
        }
    }

    @Test("a position that the log has is waited for") func aPositionThatThe() async throws {
        let log = try await log(10)
        try await LiveGateway.with(log) { live in
            let (early, late) = (try await live.connect(), try await live.connect())
            log.stall(0)
            try await append([LogAppend(key: todo.key, value: Batches.value(site, 10, "x", base: 9))], to: log)
            early.send(.subscribe(.init(stream: todo, position: .after(10), epoch: log.epoch)))
            late.send(.unsubscribe(note))
            _ = try await late.next { if case .unsubscribed = $0.body { true } else { false } }
            #expect(early.heard.isEmpty, "it waits, other frames flow")
            log.resume(0)
            #expect(try await early.nextSubscribed().after == 10)
        }
        let behind = try await self.log(10)
        try await LiveGateway.with(behind, { $0.behindMs = 200 }) { live in
            let socket = try await live.connect()
            behind.stall(0)
            try await append([LogAppend(key: todo.key, value: Batches.value(site, 10, "x", base: 9))], to: behind)
            socket.send(.subscribe(.init(stream: todo, position: .after(10), epoch: behind.epoch)))
            #expect(try await socket.nextError().error.code == .nodeBehind)
            behind.resume(0)
        }
    }

    @Test("now waits for a gateway that has just started") func nowWaitsForA() async throws {
        let log = try await log(10)
        log.stall(0)
        try await LiveGateway.with(log, hasStarted: false) { live in
            let socket = try await live.connect()
            socket.send(.subscribe(.init(stream: todo, position: .now)))
            socket.send(.unsubscribe(note))
            _ = try await socket.next { if case .unsubscribed = $0.body { true } else { false } }
            #expect(socket.heard.isEmpty, "it waits, other frames flow")
            log.resume(0)
            #expect(try await socket.nextSubscribed().after == 9)
        }
        let stalled = try await self.log(10)
        stalled.stall(0)
        try await LiveGateway.with(stalled, { $0.behindMs = 200 }, hasStarted: false) { live in
            let socket = try await live.connect()
            socket.send(.subscribe(.init(stream: todo, position: .now)))
            let error = try await socket.nextError()
            #expect(error.error.code == .nodeBehind && error.error.retryMs == 1_000 && error.head == -1)
            stalled.resume(0)
        }
    }

    @Test("a block of a node with keys is for no shared cache") func aBlockOfA() async throws {
        let keys = try KeyFile()
        let token = try keys.token(publish: "*")
        let log = try await log(1_100)
        try await LiveGateway.with(log, { $0.node.tokens = keys.gate }) { live in
            let block = try await live.ask(
                "GET",
                "/v1/streams/todo/blocks/\(log.epoch)/0",
                headers: ["authorization": "Bearer \(token)"]
            )
            #expect(block.status == 200)
            #expect(block.headers["cache-control"] == "private, max-age=31536000, immutable")
        }
    }

    @Test("a range and its blocks are the same events") func aRangeAndIts() async throws {
        let log = try await log(2_500)
        try await LiveGateway.with(log, { $0.warmRecords = 10 }) { live in
            let range = try await live.get("/v1/streams/todo/events?after=1023&limit=10000&epoch=\(log.epoch)")
            let block = try await live.get("/v1/streams/todo/blocks/\(log.epoch)/1")
            #expect(range.status == 200 && block.status == 200)
            #expect(block.headers["cache-control"] == "public, max-age=31536000, immutable")
            let (rangeText, blockText) = (
                String(decoding: range.body, as: UTF8.self), String(decoding: block.body, as: UTF8.self)
            )
            #expect(
                rangeText.hasPrefix(#"{"stream":"todo","epoch":"\#(log.epoch)","partition":0,"from":1024,"head":2499,"#)
            )
            #expect(rangeText.hasSuffix(#"],"to":2499}"#))
            #expect(blockText.contains(#""from":1024,"head":2047,"#) && blockText.hasSuffix(#"],"to":2047}"#))
            let events = blockText.drop { $0 != "[" }.dropFirst().dropLast(#"],"to":2047}"#.count)
            #expect(rangeText.contains(events))
            #expect(events.matches(of: /{"seq":/).count == (1_024...2_047).count { $0 % 3 != 2 })
            #expect(try await live.get("/v1/streams/todo/blocks/\(log.epoch)/2").status == 404)
            let limited = try await live.get("/v1/streams/todo/events?limit=2")
            #expect(String(decoding: limited.body, as: UTF8.self).hasSuffix(#"],"to":2}"#))
        }
    }
}

extension FNV1a {
    static func record(_ stream: StreamName, _ value: [UInt8]) -> UInt64 {
        stream.key.withUnsafeBytes { key in value.withUnsafeBytes { record(key: key, value: $0) } }
    }
}

extension ServerFrame {
    fileprivate var isSubscribed: Bool {
        if case .subscribed = body { true } else { false }
    }

    /// True if this is the last frame of a fetched range that ends at `seq`.
    fileprivate func isEnd(at seq: Seq) -> Bool {
        guard case .events(let events) = body else { return false }
        return ref != nil && events.to == seq
    }

    /// True if this frame proves to a subscription that no event is missing up to `seq`.
    fileprivate func isProof(of seq: Seq) -> Bool {
        switch body {
        case .events(let events): ref == nil && events.to == seq
        case .upto(_, let proven): proven == seq
        default: false
        }
    }
}
