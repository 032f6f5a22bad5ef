import EventLogConformance
import ReelCore
import ReelLog
import ReelNet
import ReelNode
import TestSupport
import Testing

@testable import ReelGateway

/// Tests what clients, operators and probes see of a log that is unavailable, inconsistent, or ended.
@Suite(.timeLimit(.minutes(15))) struct LogStateTests {
    let todo = StreamName("todo")!
    let site = Site(high: 1, low: 1)

    func publish(_ socket: TestSocket, _ ops: ClosedRange<Op>, to stream: StreamName? = nil) {
        let events = ops.map { Sent.insert(site, $0, "a\($0)") }
        socket.send(.publish(.init(stream: stream ?? todo, events: events)))
    }

    /// Returns the state that the metrics show; they show exactly one.
    func shownState(_ live: LiveGateway) async throws -> String {
        var states: [String] = []
        for state in LogState.allCases.map(\.rawValue) {
            if try await live.metric(#"reel_gateway_log_state{state="\#(state)"}"#) == 1 { states.append(state) }
        }
        return states.joined(separator: " ")
    }

    /// Returns a stream in another partition than `todo`.
    func elsewhere(_ log: any EventLog) throws -> StreamName {
        let partition = todo.partition(of: log.partitions)
        return try #require(
            ["a", "b", "c", "d"].compactMap { StreamName($0) }.first { $0.partition(of: 4) != partition }
        )
    }

    // MARK: Unavailable log

    @Test("a log that is slow is degraded and takes everything") func aLogThatIs() async throws {
        let log = try MemoryLog()
        try await LiveGateway.with(log, { $0.degradedMs = 0 }) { live in
            let (socket, reader, late) = (try await live.connect(), try await live.connect(), try await live.open())
            reader.send(.subscribe(.init(stream: todo, position: .after(-1))))
            let partition = try await reader.nextSubscribed().partition
            _ = try await reader.next { $0.body == .upto(partition: partition, seq: -1) }
            log.onAppend { _, _ in .late }
            publish(socket, 0...0)
            let frame = try await reader.next { if case .events = $0.body { true } else { false } }
            guard case .events(let events) = frame.body else { return }
            #expect(events.events.map(\.seq) == [0])
            try await live.state(becomes: "degraded")
            #expect(try await shownState(live) == "degraded")
            // This frame reports the state and proves nothing new. The gateway may send it before it reads the event.
            _ = try await reader.next {
                $0.body == .upto(partition: partition, seq: -1) || $0.body == .upto(partition: partition, seq: 0)
            }
            late.send(#"{"t":"hello","client":"test/1"}"#)
            _ = try await late.next {
                if case .welcome(let welcome) = $0.body { welcome.log == "degraded" } else { false }
            }
            publish(socket, 1...1)
            try await live.log(holds: 1, in: todo.partition(of: 4))
            log.answerLate()
            #expect(try await socket.nextAck().acks.map(\.seq) == [0])
            #expect(try await socket.nextAck().acks.map(\.seq) == [1])
            try await live.state(becomes: "ok")
            try await live.logLines("log state changed", has: 2)
        }
    }

    @Test("the gateway reports an unavailable log and answers accepted publishes after recovery")
    func answersAfterRecovery()
        async throws
    {
        let log = try MemoryLog()
        try await LiveGateway.with(log, { ($0.degradedMs, $0.unavailableMs) = (0, 1) }) { live in
            let (socket, other) = (try await live.connect(), try await live.connect())
            publish(socket, 0...0)
            _ = try await socket.nextAck()
            log.onAppend { _, _ in .late }
            publish(socket, 1...3)
            // The first publish may also have made the log unavailable for a moment.
            try await eventually("three wait") { try await live.metric("reel_gateway_in_flight_events") == 3 }
            try await live.state(becomes: "unavailable")
            #expect(try await shownState(live) == "unavailable")
            #expect(try await live.metric("reel_gateway_in_flight_bytes") ?? 0 > 3 * 256)
            #expect(try await live.metric("reel_gateway_in_flight_limit_bytes") == 128 << 20)
            #expect(try await live.seconds("reel_gateway_oldest_publish_seconds") ?? 0 > 0.001)

            publish(socket, 4...4)
            let nack = try await socket.nextNack()
            #expect(nack.op == 4 && nack.error.code == .logUnavailable && nack.error.retryMs == 1_000)
            // Reads and publishes to another partition still work.
            other.send(.subscribe(.init(stream: todo, position: .after(-1))))
            let partition = try await other.nextSubscribed().partition
            #expect(try await other.events(of: todo, partition: partition, after: -1, through: 3).count == 4)
            #expect(try await live.get("/v1/streams/todo/events").status == 200)
            log.onAppend(nil)
            publish(other, 0...0, to: try elsewhere(log))
            #expect(try await other.nextAck().acks.count == 1)

            log.answerLate()
            #expect(try await socket.nextAck().acks.map(\.seq) == [1, 2, 3])
            try await live.state(becomes: "ok")
            #expect(try await live.metric("reel_gateway_in_flight_events") == 0)
            #expect(try await shownState(live) == "ok")
            publish(socket, 4...4)
            #expect(try await socket.nextAck().acks.map(\.seq) == [4])
        }
    }

    @Test("the gateway bounds events in flight and drops no accepted event") func dropsNoAcceptedEvent() async throws {
        let log = try MemoryLog()
        try await LiveGateway.with(log, { $0.inFlightBytes = 20_000 }) { live in
            let socket = try await live.connect()
            log.onAppend { _, _ in .late }
            // Each event counts as more than 256 bytes.
            for op in 0..<100 as Range<Op> { publish(socket, op...op) }
            let nack = try await socket.nextNack()
            #expect(nack.error.code == .overloaded && nack.error.retryMs == 200)
            log.onAppend(nil)
            log.answerLate()
            var acked: [Op] = []
            while acked.count < nack.op { acked += try await socket.nextAck().acks.map(\.op) }
            #expect(acked == Array(0..<nack.op), "all that was taken, in order")
            publish(socket, nack.op...nack.op)
            #expect(try await socket.nextAck().acks.map(\.op) == [nack.op])
        }
    }

    @Test("a log that takes less than before refuses what is too large and nothing else") func aLogThatTakesLess()
        async throws
    {
        let log = try MemoryLog(partitions: 1)
        try await LiveGateway.with(log) { live in
            let (socket, other) = (try await live.connect(), try await live.connect())
            let large = Sent.insert(Site(high: 2, low: 2), 0, "b", String(repeating: "x", count: 1_000))
            log.onAppend { _, _ in .tooLarge(most: 1_000) }
            // Both events are in one append.
            socket.send(.publish(.init(stream: todo, events: [Sent.insert(site, 0, "a"), large])))
            let first = [try await socket.nextNack(), try await socket.nextNack()].map(\.error)
            #expect(first.map(\.code) == [.logUnavailable, .tooLarge])
            #expect(first.map(\.retryMs) == [0, nil])
            #expect(first[1].message.hasSuffix("the log takes at most 996"), "\(first[1].message)")
            log.onAppend(nil)
            publish(socket, 0...0)
            #expect(try await socket.nextAck().acks.map(\.seq) == [0])
            other.send(.publish(.init(stream: todo, events: [large])))
            #expect(try await other.nextNack().error.code == .tooLarge, "it does not go to the log any more")
            publish(socket, 1...1)
            #expect(try await socket.nextAck().acks.map(\.seq) == [1])
        }
    }

    @Test("a report without a place is acked where the record was read") func aReportWithoutA() async throws {
        let log = try MemoryLog()
        try await LiveGateway.with(log) { live in
            let socket = try await live.connect()
            log.onAppend { _, _ in .withoutPlace }
            publish(socket, 0...2)
            #expect(try await socket.nextAck().acks.map(\.seq) == [0, 1, 2])
            try await live.state(becomes: "ok")
        }
    }

    @Test("the gateway nacks events that the log reported and lost, and continues") func nacksLostEvents() async throws
    {
        let log = try MemoryLog()
        try await LiveGateway.with(log, { $0.unavailableMs = 1 }) { live in
            let socket = try await live.connect()
            log.onAppend { _, _ in .lost }
            publish(socket, 0...1)
            let errors = [try await socket.nextNack(), try await socket.nextNack()].map(\.error)
            #expect(errors.map(\.code) == [.logUnavailable, .gap])
            #expect(errors.map(\.retryMs) == [0, 0])
            log.onAppend(nil)
            try await live.state(becomes: "ok")
            publish(socket, 0...1)
            #expect(try await socket.nextAck().acks.map(\.seq) == [0, 1])
        }
    }

    @Test("a broken tail continues at its position") func brokenTailContinues() async throws {
        let seed = TestSeed.value
        var random = SeededNumbers(seed)
        let log = try MemoryLog(partitions: 1)
        try await LiveGateway.with(log, { $0.tailPauseMs = 1 }) { live in
            let (writer, reader) = (try await live.connect(), try await live.connect())
            reader.send(.subscribe(.init(stream: todo, position: .after(-1))))
            _ = try await reader.nextSubscribed()
            var (next, proven): (Op, Seq) = (0, -1)
            for _ in 0..<20 {
                let count = Op.random(in: 1...30, using: &random)
                for op in next..<next + count { publish(writer, op...op) }
                log.breakTails(0, LogError(.logUnavailable, "the connection was lost"))
                next += count
                var acked: [Seq] = []
                while acked.count < Int(count) { acked += try await writer.nextAck().acks.map(\.seq) }
                #expect(acked == Array((next - count)..<next), "seed \(seed)")
                let events = try await reader.events(of: todo, partition: 0, after: proven, through: next - 1)
                #expect(events.map(\.seq) == Array((proven + 1)..<next), "seed \(seed)")
                proven = next - 1
            }
        }
    }

    // MARK: Inconsistent log

    @Test("a log that is shorter than what was read is ahead of log for everybody") func aLogThatIsShorter()
        async throws
    {
        let log = try MemoryLog(partitions: 1)
        try await LiveGateway.with(log, { $0.node.loops = 2 }) { live in
            let sockets = [try await live.connect(), try await live.connect(), try await live.connect()]
            publish(sockets[0], 0...4)
            _ = try await sockets[0].nextAck()
            for socket in sockets {
                socket.send(.subscribe(.init(stream: todo, position: .now)))
                _ = try await socket.nextSubscribed()
            }
            log.onAppend { _, _ in .late }
            publish(sockets[0], 5...5)
            try await live.log(holds: 5, in: 0)
            log.rollBack(0, to: 2)
            log.breakTails(0, LogError(.logUnavailable, "the connection was lost"))
            for socket in sockets { #expect(try await socket.nextError().error.code == .aheadOfLog) }
            #expect(try await sockets[0].nextNack().error.code == .aheadOfLog, "what was in flight")
            publish(sockets[1], 6...6)
            #expect(try await sockets[1].nextNack().error.code == .aheadOfLog)
            #expect(try await live.get("/v1/streams/todo/events").status == 409)
            #expect(try await live.get("/v1/streams/todo/head").status == 409)
            #expect(try await live.get("/v1/streams/todo/snapshot").status == 409)
            let ready = try await live.ready()
            #expect(ready.contains(#""log":"ahead_of_log","detail":"ahead_of_log: "#), "\(ready)")
            #expect(try await shownState(live) == "ahead_of_log")
            let late = try await live.open()
            late.send(#"{"t":"hello","client":"test/1"}"#)
            _ = try await late.next {
                if case .welcome(let welcome) = $0.body { welcome.log == "ahead_of_log" } else { false }
            }
        }
    }

    @Test("every client receives diverged when a record is not at its reported seq") func divergenceReachesAll()
        async throws
    {
        let log = try MemoryLog(partitions: 1)
        try await LiveGateway.with(log) { live in
            let (writer, reader) = (try await live.connect(), try await live.connect())
            reader.send(.subscribe(.init(stream: todo, position: .after(-1))))
            _ = try await reader.nextSubscribed()
            // The log reports the record as durable and loses it before the gateway has read it.
            // Another record then gets its seq.
            log.stall(0)
            publish(writer, 0...0)
            try await live.log(holds: 0, in: 0)
            try await eventually("the log has reported") {
                try await live.metric("reel_gateway_append_seconds_count") == 1
            }
            log.rollBack(0, to: 0)
            log.append([LogAppend(key: todo.key, value: Batches.value(Site(high: 2, low: 2), 0, "x"))], to: 0) { _ in }
            log.resume(0)
            #expect(try await writer.nextNack().error.code == .diverged)
            #expect(try await reader.nextError().error.code == .diverged)
            #expect(
                reader.heard.allSatisfy { if case .events = $0.body { false } else { true } },
                "nothing wrong is served"
            )
            let ready = try await live.ready()
            #expect(ready.contains(#""log":"diverged","detail":"diverged: "#), "\(ready)")
            #expect(try await shownState(live) == "diverged")
        }
    }

    // MARK: End of the epoch, and unknown barriers

    @Test("every client receives a changed epoch when the log is recreated") func recreatedLogChangesEpoch()
        async throws
    {
        let log = try MemoryLog(partitions: 1)
        try await LiveGateway.with(log) { live in
            let socket = try await live.connect()
            publish(socket, 0...0)
            _ = try await socket.nextAck()
            socket.send(.subscribe(.init(stream: todo, position: .now)))
            _ = try await socket.nextSubscribed()
            log.recreate(Epoch(0x77))
            #expect(try await socket.nextError().error.code == .epochChanged)
            publish(socket, 1...1)
            #expect(try await socket.nextNack().error.code == .epochChanged)
            #expect(try await live.ready().contains(#""log":"ended""#))
            #expect(try await shownState(live) == "ended")
        }
    }

    @Test("before a barrier that is not known only that partition stops") func beforeABarrierThat() async throws {
        let log = try MemoryLog()
        let (partition, other) = (todo.partition(of: 4), try elsewhere(log))
        try await LiveGateway.with(log) { live in
            let (socket, late) = (try await live.connect(), try await live.connect())
            socket.send(.subscribe(.init(stream: todo, position: .after(-1))))
            _ = try await socket.nextSubscribed()
            publish(socket, 0...0)
            _ = try await socket.nextAck()
            let barrier = Array(#"{"fold":2,"type":"barrier"}"#.utf8)
            log.append([LogAppend(key: Array("~reel".utf8), value: barrier)], to: partition) { _ in }
            #expect(try await socket.events(of: todo, partition: partition, after: -1, through: 0).count == 1)
            #expect(try await socket.nextError().error.code == .internal)
            publish(socket, 1...1)
            let nack = try await socket.nextNack()
            #expect(nack.error.code == .internal && nack.error.message.contains("barrier"))
            publish(socket, 0...0, to: other)
            #expect(try await socket.nextAck().acks.count == 1, "the others go on")
            late.send(.subscribe(.init(stream: todo, position: .after(-1))))
            #expect(try await late.events(of: todo, partition: partition, after: -1, through: 0).count == 1)
            #expect(try await late.nextError().error.code == .internal, "it is told that nothing more comes")
            let ready = try await live.ready()
            #expect(ready.contains(#""log":"ok""#))
            #expect(ready.contains(#""goal":-1,"code":"internal","stopped":"found a barrier"#))
        }
    }

    @Test("a subscription at now fails immediately after an unknown barrier") func unknownBarrierFails() async throws {
        let log = try MemoryLog(partitions: 1)
        let barrier = LogAppend(key: Array("~reel".utf8), value: Array(#"{"fold":2,"type":"barrier"}"#.utf8))
        log.append([barrier], to: 0) { _ in }
        log.stall(0)
        try await LiveGateway.with(log, hasStarted: false) { live in
            let (early, late) = (try await live.connect(), try await live.connect())
            early.send(.subscribe(.init(stream: todo, position: .now)))
            early.send(.unsubscribe(StreamName("note")!))
            _ = try await early.next { if case .unsubscribed = $0.body { true } else { false } }
            log.resume(0)
            #expect(try await early.nextError().error.code == .internal)
            late.send(.subscribe(.init(stream: todo, position: .now)))
            #expect(try await late.nextError().error.code == .internal)
        }
    }

    // MARK: Void records

    @Test("void records block no client, and the gateway counts and logs them by reason") func countsVoidRecords()
        async throws
    {
        let log = try MemoryLog()
        let partition = todo.partition(of: 4)
        try await LiveGateway.with(log) { live in
            let socket = try await live.connect()
            socket.send(.subscribe(.init(stream: todo, position: .after(-1))))
            _ = try await socket.nextSubscribed()
            publish(socket, 0...0)
            _ = try await socket.nextAck()
            let event = Batches.value(site, 7, "x")
            let seed = Array(#"{"line":{"end":-1,"op":4,"site":"\#(site)"},"type":"seed"}"#.utf8)
            let voids: [(key: [UInt8], value: [UInt8])] = [
                (try elsewhere(log).key, event), (Array("no\nname\u{1b}[2J".utf8), event),
                (todo.key, Array(#"{ "not": "canonical" }"#.utf8)), (todo.key, []), (todo.key, seed),
                (Array("~reel".utf8), Array("{}".utf8)),
            ]
            log.append(voids.map { LogAppend(key: $0.key, value: $0.value) }, to: partition) { _ in }
            log.leaveHole(partition)
            log.leaveHole(partition)
            publish(socket, 1...1)
            #expect(try await socket.nextAck().acks.map(\.seq) == [9])
            let events = try await socket.events(of: todo, partition: partition, after: -1, through: 9)
            #expect(events.map(\.seq) == [0, 9], "and the seqs between are proven")
            for (reason, count) in [
                ("wrong_partition", 1), ("bad_key", 1), ("bad_event", 2), ("late_seed", 1), ("bad_barrier", 1),
                ("hole", 2), ("behind_end", 0),
            ] {
                let found = try await live.metric(#"reel_gateway_void_records_total{reason="\#(reason)"}"#)
                #expect(found == count, "\(reason)")
            }
            let lines = live.logLines("void record")
            #expect(lines.count >= 5)
            let named = try #require(lines.first { $0.contains("reason=bad_key") })
            #expect(named.contains("epoch=\(log.epoch) partition=\(partition) seq=2 "), "\(named)")
            #expect(named.contains(#"no\x0aname\x1b[2J"#), "nothing of somebody else's reaches a terminal: \(named)")
        }
    }
}
