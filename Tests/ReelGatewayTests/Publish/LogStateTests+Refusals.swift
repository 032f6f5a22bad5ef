import EventLogConformance
import ReelCore
import ReelLog
import ReelNode
import TestSupport
import Testing

@testable import ReelGateway

/// Tests a log that refuses reads or writes.
extension LogStateTests {
    @Test("a partition that cannot be read is unavailable until it can") func aPartitionThatCannot() async throws {
        let log = try MemoryLog(partitions: 1)
        try await LiveGateway.with(log, { $0.tailPauseMs = 1 }) { live in
            let socket = try await live.connect()
            publish(socket, 0...0)
            _ = try await socket.nextAck()
            log.lose(0, LogError(.logUnavailable, "there is no such topic"))
            try await live.state(becomes: "unavailable")
            #expect(try await shownState(live) == "unavailable")
            let ready = try await live.ready()
            #expect(ready.contains(#""detail":"log_unavailable: there is no such topic""#), "\(ready)")
            publish(socket, 1...1)
            let nack = try await socket.nextNack()
            #expect(nack.error.code == .logUnavailable && nack.error.retryMs != nil)
            log.lose(0, LogError(.logUnavailable, "still none"))
            try await eventually("the reason is that of now") { try await live.ready().contains("still none") }
            #expect(live.logLines("log tail failed").count == 1, "it is not said again and again")

            log.lose(0, nil)
            // The state becomes degraded, not ok, because the last write was the publish that failed.
            try await live.state(becomes: "degraded")
            publish(socket, 1...1)
            #expect(try await socket.nextAck().acks.map(\.seq) == [1])
            try await live.state(becomes: "ok")
            try await live.logLines("log state changed", has: 3)
        }
    }

    @Test("a right that the gateway lacks is named and clients wait for it") func aRightThatThe() async throws {
        let log = try MemoryLog()
        let elsewhere = try elsewhere(log)
        try await LiveGateway.with(log) { live in
            let socket = try await live.connect()
            log.onAppend { _, _ in .fail(LogError(.forbidden, "no right to Write")) }
            publish(socket, 0...0)
            let nack = try await socket.nextNack()
            #expect(nack.error.code == .logUnavailable && nack.error.retryMs == 1_000, "no client lacks it")
            try await live.state(becomes: "unavailable")
            let ready = try await live.ready()
            #expect(ready.contains(#""detail":"forbidden: no right to Write""#), "\(ready)")
            log.onAppend(nil)
            publish(socket, 0...0, to: elsewhere)
            #expect(try await socket.nextAck().acks.map(\.seq) == [0])
            // The right is valid for all partitions, so success in one partition ends the state in all.
            try await live.state(becomes: "ok")
            publish(socket, 0...0)
            #expect(try await socket.nextAck().acks.map(\.seq) == [0])
        }
    }

    @Test("the gateway reports a log that refuses appends for long, with the reason") func reportsRefusingLog()
        async throws
    {
        let refusal = LogError(.logUnavailable, "against the policy")
        try await LiveGateway.with(nil, { ($0.degradedMs, $0.unavailableMs) = (2_000, 5_000) }) { live in
            let context = live.gateway.context
            // The first failure counts immediately, because the next attempt may come much later.
            for (nowMs, state) in [(10_000, .degraded), (15_000, .degraded), (15_001, .unavailable)]
                as [(Int64, LogState)]
            {
                context.health.appending(fails: refusal, nowMs: nowMs)
                #expect(context.health.logState == state)
            }
            let ready = try await live.ready()
            #expect(ready.contains(#""detail":"log_unavailable: against the policy""#), "\(ready)")
            context.health.appended()
            #expect(context.health.logState == .ok)
            context.health.appending(fails: refusal, nowMs: 99_000)
            #expect(context.health.logState == .degraded, "one is enough, and stays")
        }
        let log = try MemoryLog()
        try await LiveGateway.with(log, { ($0.degradedMs, $0.unavailableMs) = (0, 1) }) { live in
            let socket = try await live.connect()
            log.onAppend { _, _ in .fail(refusal) }
            try await eventually("it is said") {
                publish(socket, 0...0)
                _ = try await socket.nextNack()
                return try await live.ready().contains("against the policy")
            }
            log.onAppend(nil)
            publish(socket, 0...0)
            #expect(try await socket.nextAck().acks.map(\.seq) == [0])
            try await live.state(becomes: "ok")
        }
    }

    @Test("announcements that are overdue count like publishes that wait, but not where the process stood still")
    func overdueAnnouncements() {
        let settings = GatewaySettings()
        var announcing = LogState.Announcing(everyMs: 2_000)
        announcing.look(nowMs: 50_000)
        announcing.ended(with: nil, nowMs: 50_500)
        func overdue(_ nowMs: Int64) -> Int64 {
            announcing.look(nowMs: nowMs)
            return announcing.overdueMs
        }
        #expect([52_000, 54_500, 56_500].map(overdue) == [0, 0, 2_000])
        #expect(announcing.refusal(settings) == nil)
        announcing.ended(with: ReelError(.logUnavailable, "the disk is full"), nowMs: 57_000)
        #expect(overdue(57_500) == 3_000 && announcing.refusal(settings)?.message == "the disk is full")
        announcing.ended(with: nil, nowMs: 58_000)
        #expect(announcing.overdueMs == 0 && announcing.refusal(settings) == nil)
        #expect(overdue(99_000) == 0, "the process stood still")
    }

    @Test("a partition that is damaged somewhere is unavailable all the time") func aPartitionThatIs() async throws {
        let memory = try MemoryLog(partitions: 1)
        let log = DamagedLog(memory)
        try await LiveGateway.with(log, { $0.tailPauseMs = 1 }) { live in
            let socket = try await live.connect()
            publish(socket, 0...0)
            _ = try await socket.nextAck()
            memory.stall(0)
            log.damaged = 1
            let events = (1...2).map { LogAppend(key: todo.key, value: Batches.value(site, $0, "x")) }
            memory.append(events, to: 0) { _ in }
            memory.breakTails(0, LogError(.logUnavailable, "the connection was lost"))
            try await eventually("it was tried again and again") { log.met >= 10 }
            #expect(live.logLines("log state changed").count == 1)
            try await live.state(becomes: "unavailable")
            log.damaged = nil
            memory.resume(0)
            try await live.state(becomes: "ok")
            try await live.logLines("log state changed", has: 2)
        }
    }
}
