import EventLogConformance
import ReelCore
import ReelLog
import ReelNet
import ReelNode
import TestSupport
import Testing

@testable import ReelGateway

/// Tests the measure of a gateway's lag, which is the time for which other nodes have read further, and its effects.
@Suite(.timeLimit(.minutes(15))) struct LagTests {
    /// A gateway of one partition that measures its lag every second.
    private struct Looks {
        var lag = Lag(partitions: 1, limitMs: 30_000)
        var seconds: Int64 = 0

        mutating func look(read: Seq, others: Seq) {
            seconds += 1
            lag.look(read: [read], others: [others], nowMs: seconds * 1_000)
        }
    }

    @Test("a reader that continues does not lag, whatever the number of records") func readingNodeKeepsUp() {
        var looks = Looks()
        for second: Int64 in 0..<1_000 {
            looks.look(read: second * 100_000, others: (second + 10) * 100_000)
            #expect(looks.lag.ms <= 10_000)
            #expect(!looks.lag.isTooLong)
        }
    }

    @Test("a stalled reader exceeds the lag limit and recovers at half of it") func stalledReaderLags() {
        var looks = Looks()
        for second: Int64 in 0...31 {
            #expect(!looks.lag.isTooLong)
            looks.look(read: 5, others: 10 + second)
        }
        #expect(looks.lag.isTooLong)
        #expect(looks.lag.ms == 31_000)
        // It reads, and stays 20 s behind. That is above half of the limit, so it has not recovered.
        for second: Int64 in 32..<100 {
            looks.look(read: 10 + second - 21, others: 10 + second)
            #expect(looks.lag.isTooLong)
        }
        looks.look(read: 100, others: 110)
        #expect(!looks.lag.isTooLong)
        looks.look(read: 110, others: 110)
        #expect(looks.lag.ms == 0)
    }

    @Test("a lag of hours has its full duration, and a catching-up reader is not ready early") func longLagIsExact() {
        var looks = Looks()
        for second: Int64 in 0..<10_000 { looks.look(read: 0, others: 1 + second) }
        #expect(looks.lag.ms == 9_999_000)
        for read: Seq in stride(from: 0, through: 9_000, by: 100) {
            looks.look(read: read, others: 10_000)
            #expect(looks.lag.isTooLong, "\(read)")
        }
        looks.look(read: 10_000, others: 10_000)
        #expect(!looks.lag.isTooLong)
    }

    @Test("a pause of all readers adds at most one step of lag") func pauseAddsNoLag() {
        var looks = Looks()
        looks.look(read: 5, others: 10)
        for _ in 0..<1_000 { looks.look(read: 5, others: 10) }
        #expect(looks.lag.ms == 0)
        // The log is available again, and the other nodes were faster.
        looks.look(read: 5, others: 50)
        #expect(looks.lag.ms == Lag.stepMsMax)
        looks.look(read: 50, others: 60)
        #expect(looks.lag.ms == 0)
    }

    @Test("a reader ahead of all others does not lag") func leaderDoesNotLag() {
        var looks = Looks()
        for second: Int64 in 0..<100 { looks.look(read: 5, others: 10 + second) }
        #expect(looks.lag.isTooLong)
        // The node that was ahead has left.
        looks.look(read: 5, others: 4)
        #expect(!looks.lag.isTooLong && looks.lag.ms == 0)
        looks.look(read: 5, others: .none)
        #expect(looks.lag.ms == 0)
    }

    @Test("without a limit nothing is too long") func withoutALimitNothing() {
        var lag = Lag(partitions: 1, limitMs: 0)
        for second: Int64 in 0..<1_000 { lag.look(read: [0], others: [second], nowMs: second * 1_000) }
        #expect(lag.ms > 900_000)
        #expect(!lag.isTooLong)
    }

    @Test("a gateway is not ready while the others read on without it") func aGatewayIsNot() async throws {
        let log = NeighbourLog(try MemoryLog(partitions: 1))
        try await LiveGateway.with(log) {
            $0.node.announceMs = 20
            $0.peerLagMsMax = 500
        } _: { live in
            var others: Seq = 0
            try await eventually("it is not ready") {
                others += 1
                log.neighbour(readsToEnd: others)
                let answer = try await live.get("/readyz")
                return answer.status == 503 && String(decoding: answer.body, as: UTF8.self).contains(#""behind":true"#)
            }
            #expect(try await live.seconds("reel_gateway_peer_lag_seconds") ?? 0 > 0.5)
            try await live.logLines("not ready", has: 1)
            #expect(
                live.logLines("not ready")[0].contains("role=gateway reason=\"the other gateways are too far ahead\"")
            )
            // The neighbour has no position ahead of the gateway any more, so the gateway is ready again.
            log.neighbour(reads: .none)
            try await eventually("it is ready") { try await live.get("/readyz").status == 200 }
            try await live.logLines("ready", has: 2)
        }
    }

    @Test("a position beyond the end of the log makes no gateway unready, and the list of the nodes stays readable")
    func inventedPositions() async throws {
        let log = NeighbourLog(try MemoryLog(partitions: 1), id: "rogue")
        try await LiveGateway.with(log) {
            $0.node.announceMs = 20
            $0.peerLagMsMax = 100
        } _: { live in
            var believed = Lag(partitions: 1, limitMs: 100)
            for second: Seq in 0..<10 {
                let seq = largestInteger - 10 + second
                log.neighbour(reads: seq)
                try await live.cluster(contains: #""seq":\#(seq)"#)
                live.gateway.context.health.look(at: live.gateway.announcer.nodes, nowMs: second * 1_000)
                believed.look(read: [.none], others: [seq], nowMs: second * 1_000)
            }
            #expect(live.gateway.context.health.lagMs == 0)
            #expect(believed.isTooLong, "had the gateway believed the positions")
            #expect(try await live.get("/readyz").status == 200)
            log.neighbour(reads: largestInteger)
            try await live.cluster(contains: #""seq":9007199254740991"#)
            let body = String(decoding: try await live.get("/v1/cluster").body, as: UTF8.self)
            let lags = body.matches(of: /"lag":(-?[0-9]+)/).map { Int64($0.1) }
            #expect(lags == [0, 0], "one bad announcement changes no other entry: \(body)")
        }
    }

    @Test("a snapshot node that is ahead makes no gateway unready") func aSnapshotNodeThat() async throws {
        try await LiveGateway.with(try MemoryLog(partitions: 1)) {
            $0.peerLagMsMax = 1
        } _: { live in
            for seq: Seq in 0..<100 {
                let ahead = ["snapshot", "gateway"].map { role in
                    NodeAnnouncement(
                        id: role == "gateway" ? live.gateway.context.nodeID : "other",
                        role: role,
                        url: "http://127.0.0.1:1",
                        advertised: nil,
                        build: "0",
                        positions: [.init(partition: 0, seq: seq)],
                        atMs: 0
                    )
                }
                live.gateway.context.health.look(at: ahead, nowMs: seq * 1_000)
                #expect(!live.gateway.context.health.node.roles[0].isBehind)
            }
        }
    }
}
