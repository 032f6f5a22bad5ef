import EventLogConformance
import ReelCore
import ReelLog
import ReelNet
import ReelNode
import TestSupport
import Testing

@testable import ReelGateway

/// Tests clients that reconnect to a restarted gateway, whose ring holds none of the events that they have missed.
@Suite(.timeLimit(.minutes(15))) struct CatchUpTests {
    @Test("the gateway reads the log once for many clients that reconnect") func sharesReconnectReads() async throws {
        let (count, distance) = (30_000, 25)
        let streams = (0..<100).map { StreamName("sparse\($0)")! }
        let log = HeldLog(try await .sparse(count, streams, every: distance))
        try await LiveGateway.with(
            log,
            {
                $0.warmRecords = 1
                $0.node.loops = 2
            }
        ) { live in
            let before = log.rangesRead.count
            try await withThrowingTaskGroup(of: Void.self) { group in
                for client in 0..<10 {
                    group.addTask {
                        let socket = try await live.connect()
                        let own = Array(streams[client * 10..<client * 10 + 10])
                        for stream in own { socket.send(.subscribe(.init(stream: stream, position: .after(-1)))) }
                        let found = try await socket.events(of: own, to: Seq(count - 1))
                        for (index, stream) in zip(client * 10..<client * 10 + 10, own) {
                            let first = index * distance + distance / 2
                            let wanted = stride(from: first, to: count, by: distance * streams.count).map { Seq($0) }
                            #expect(found[stream] == wanted, "\(stream)")
                        }
                    }
                }
                try await group.waitForAll()
            }
            let ranges = log.rangesRead[before...]
            #expect(ranges.reduce(0) { $0 + $1.count } == count - 1, "each seq is read once")
            #expect(ranges.count <= 20, "in pages")
            #expect(try await live.metric(#"reel_gateway_pages_total{source="read"}"#) == ranges.count)
            #expect(try await live.metric("reel_gateway_pages_bytes") ?? 0 > count * 100)
        }
    }

    /// The client subscribes at more positions than the gateway reads concurrently for one client.
    @Test("a client that wants many places of the log is read a few at a time") func aClientThatWants() async throws {
        let places = 3 * ReadAccount.operationsMax
        let count = places * Int(PageCache.seqsMax)
        let log = HeldLog(try await .sparse(count, [StreamName("sparse")!], every: 1_000))
        try await LiveGateway.with(log, { $0.warmRecords = 1 }) { live in
            let socket = try await live.connect()
            let before = log.reads
            log.hold()
            let streams = (0..<places).map { StreamName("s\($0)")! }
            for (index, stream) in streams.enumerated() {
                let after = Seq(index) * PageCache.seqsMax - 1
                let position = ClientFrame.Position.after(after)
                socket.send(.subscribe(.init(stream: stream, position: position, epoch: log.epoch)))
            }
            try await eventually("all have come") {
                try await live.metric("reel_gateway_subscriptions") == places
            }
            try await eventually("reads under way") { log.waitingReads == ReadAccount.operationsMax }
            #expect(log.reads - before == ReadAccount.operationsMax)
            log.release()
            _ = try await socket.events(of: streams, to: Seq(count - 1))
            #expect(log.rangesRead[before...].reduce(0) { $0 + $1.count } == count - 1, "each seq is read once")
        }
    }

    @Test("the gateway sends the catch-up of many subscriptions at the client's pace") func pacesManySubscriptions()
        async throws
    {
        let (count, streams) = (8_000, (0..<40).map { StreamName("dense\($0)")! })
        let text = String(repeating: "x", count: 5_000)
        let log = try await MemoryLog.sparse(count, streams, every: 1, text)
        try await LiveGateway.with(
            log,
            {
                ($0.warmRecords, $0.sendQueueBytes, $0.paceBytes) = (1, 300_000, 100_000)
                // A paused socket does not answer pings, so no ping may be due during the test.
                $0.pingMs = 3_600_000
            }
        ) { live in
            let socket = try await live.connect()
            socket.pause()
            for stream in streams { socket.send(.subscribe(.init(stream: stream, position: .after(-1)))) }
            try await eventually("all wait") {
                try await live.metric("reel_gateway_subscriptions") == streams.count
            }
            try await eventually("they get something") {
                try await live.metric(#"reel_gateway_caught_up_events_total{source="log"}"#) ?? 0 > 0
            }
            socket.resume()
            let found = try await socket.events(of: streams, to: Seq(count - 1))
            for (index, stream) in streams.enumerated() {
                #expect(found[stream] == stride(from: index, to: count, by: streams.count).map { Seq($0) })
            }
        }
    }
}
