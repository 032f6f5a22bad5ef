import TestSupport
import Testing

@testable import ReelClient

@Suite struct FailoverTests {
    @Test("the first round over all nodes is quick, and then the pauses double") func oneRoundOverAll() {
        Seeds.run(50) { seed in
            var failover = Failover(nodes: ["a", "b", "c"], seed: seed)
            var tried: [String] = []
            var pauses: [Int64] = []
            for _ in 0..<30 {
                guard let attempt = failover.next(nowMs: 1_000) else { return }
                tried.append(attempt.node)
                pauses.append(attempt.atMs - 1_000)
                failover.lost(nowMs: 1_000)
            }
            #expect(Set(tried[0..<3]) == ["a", "b", "c"], "seed \(seed)")
            #expect(pauses[0] == 0)
            #expect(pauses[1..<4].allSatisfy { $0 <= Failover.quickMs }, "seed \(seed): \(pauses)")
            for (index, pause) in pauses.enumerated().dropFirst(4) {
                let longest = min(Failover.pauseMs << Int64((index - 1) / 3 - 1), Failover.pauseMaxMs)
                #expect((longest / 2...longest).contains(pause), "seed \(seed): \(pauses)")
            }
        }
    }

    @Test("on a slow network an attempt gets more time once all nodes have failed") func onASlowNetwork() {
        var failover = Failover(nodes: ["a", "b"], seed: 1)
        let patience = (0..<9).map { _ in
            _ = failover.next(nowMs: 0)
            defer { failover.lost(nowMs: 0) }
            return failover.attemptMs
        }
        #expect(patience == [3_000, 3_000, 3_000, 6_000, 6_000, 12_000, 12_000, 12_000, 12_000])
        _ = failover.next(nowMs: 0)
        failover.welcomed(nowMs: 0)
        failover.lost(nowMs: Failover.steadyMs)
        #expect(failover.attemptMs == 3_000)
    }

    @Test("a client avoids a node until its retry time, and tries other nodes at once")
    func heldNodes() {
        var failover = Failover(nodes: ["a", "b"], seed: 1, startsAtFirst: true)
        #expect(failover.next(nowMs: 0)?.node == "a")
        failover.lost(nowMs: 0, retryMs: 5_000)
        for _ in 0..<3 {
            #expect(failover.next(nowMs: 100)?.node == "b")
            failover.lost(nowMs: 100)
        }
        #expect(failover.next(nowMs: 200)?.node == "b")
        failover.lost(nowMs: 200, retryMs: .max)
        let attempt = failover.next(nowMs: 300)
        #expect(attempt.map { $0.node == "a" ? $0.atMs >= 5_000 : $0.atMs >= 200 + Failover.holdMsMax } == true)
        failover.lost(nowMs: 6_000)
        #expect(failover.next(nowMs: 6_000)?.node == "a")

        var alone = Failover(nodes: ["a"], seed: 1)
        _ = alone.next(nowMs: 0)
        alone.lost(nowMs: 0, retryMs: 5_000)
        #expect(alone.next(nowMs: 0)?.atMs == 5_000)
    }

    @Test("a client replaces a lost connection with a connection to another node") func aLostConnectionIs() {
        Seeds.run(50) { seed in
            var failover = Failover(nodes: ["a", "b"], seed: seed)
            let first = failover.next(nowMs: 0)?.node
            failover.welcomed(nowMs: 5)
            failover.lost(nowMs: 20_000)
            let second = failover.next(nowMs: 20_000)
            #expect(second?.node != first)
            #expect((second?.atMs ?? 0) - 20_000 <= Failover.quickMs)
        }
    }

    @Test("a client does not reconnect without a pause to a node that accepts and drops connections")
    func aNodeThatAccepts() {
        var failover = Failover(nodes: ["a"], seed: 1)
        var last: Int64 = 0
        for _ in 0..<12 {
            last = failover.next(nowMs: 0)?.atMs ?? 0
            failover.welcomed(nowMs: 0)
            failover.lost(nowMs: 10)
        }
        #expect(last >= Failover.pauseMaxMs / 2)
    }

    @Test("clients leave a draining node at different moments") func clientsLeaveADraining() {
        let moments = (0..<100).map { seed in
            var failover = Failover(nodes: ["a"], seed: UInt64(seed))
            return failover.leaves(afterMs: 5_000, nodes: ["b"], nowMs: 100)
        }
        #expect(moments.allSatisfy { (100...5_100).contains($0) })
        #expect(Set(moments).count > 90)
    }

    @Test("a client also tries the nodes that it has learned") func nodesHeardOfAre() {
        var failover = Failover(nodes: ["a"], seed: 3)
        failover.learn(["b", "a", "c", "b"])
        #expect(failover.nodes == ["a", "b", "c"])
        #expect((0..<5).compactMap { _ in failover.next(nowMs: 0)?.node } == ["a", "b", "a", "c", "a"])
        _ = failover.next(nowMs: 0)
        #expect(failover.peer() != failover.current)
    }

    @Test("a client replaces the nodes that it has learned with the list of the connected node")
    func replacesLearnedNodes() {
        var failover = Failover(nodes: ["a"], seed: 3)
        failover.learn(["b", "c"])
        failover.learn([])
        #expect(failover.nodes == ["a", "b", "c"])
        while failover.next(nowMs: 0)?.node != "c" { failover.lost(nowMs: 0) }
        failover.welcomed(nowMs: 0)
        // The connected node names only other nodes.
        failover.learn(["a", "d"])
        #expect(failover.nodes == ["a", "d", "c"])
        failover.learn((0..<100).map { "n\($0)" })
        #expect(failover.nodes.count == 1 + Failover.learnedMax)
    }

    @Test("unreachable learned nodes do not keep a client from its own node") func namesThatLeadNowhere() {
        var failover = Failover(nodes: ["a"], seed: 3)
        for _ in 0..<5 {
            while failover.next(nowMs: 0)?.node != "a" { failover.lost(nowMs: 0) }
            failover.learn((0..<16).map { "inner\($0)" })
            failover.welcomed(nowMs: 0)
            failover.lost(nowMs: 10_000)
            let tried = (0..<2).compactMap { _ in
                defer { failover.lost(nowMs: 10_000) }
                return failover.next(nowMs: 10_000)?.node
            }
            #expect(tried.last == "a", "\(tried)")
        }
    }

    @Test("a client with only HTTPS nodes ignores nodes without HTTPS") func secureNodesOnly() {
        var (secure, mixed) = (
            Failover(nodes: ["https://a"], seed: 3), Failover(nodes: ["https://a", "http://b"], seed: 3)
        )
        secure.learn(["http://c", "https://d", "HTTPS://e", "f:80"])
        #expect(secure.nodes == ["https://a", "https://d"])
        _ = secure.leaves(afterMs: 0, nodes: ["http://c"], nowMs: 0)
        #expect(!secure.nodes.contains("http://c"))
        mixed.learn(["http://c", "https://d"])
        #expect(mixed.nodes == ["https://a", "http://b", "http://c", "https://d"])
    }

    @Test("a client forgets unreachable learned nodes once another node answers") func nodesHeardOfThat() {
        Seeds.run(50) { seed in
            var failover = Failover(nodes: ["a", "b"], seed: seed)
            failover.learn(["c", "d", "e"])
            // No node answers. The cause may be the network.
            for _ in 0..<7 {
                _ = failover.next(nowMs: 0)
                failover.lost(nowMs: 0)
            }
            #expect(failover.nodes == ["a", "b", "c", "d", "e"], "seed \(seed)")
            while failover.next(nowMs: 0)?.node != "d" { failover.lost(nowMs: 0) }
            failover.welcomed(nowMs: 0)
            #expect(failover.nodes == ["a", "b", "d"], "seed \(seed)")
            failover.lost(nowMs: 1)
            #expect(Set((0..<3).compactMap { _ in failover.next(nowMs: 1)?.node }) == ["a", "b", "d"], "seed \(seed)")
        }
    }

    @Test("a client keeps a learned node that answers, even without a welcome") func keepsAnsweringNode() {
        Seeds.run(50) { seed in
            var failover = Failover(nodes: ["a"], seed: seed)
            failover.learn(["b", "c"])
            // Node b answers without a welcome: it is at an earlier log, or does not accept the token. Node c does not
            // answer.
            func attempt() -> String? {
                let node = failover.next(nowMs: 0)?.node
                if node == "b" { failover.answered() }
                return node
            }
            for _ in 0..<3 {
                _ = attempt()
                failover.lost(nowMs: 0)
            }
            while attempt() != "a" { failover.lost(nowMs: 0) }
            failover.welcomed(nowMs: 0)
            #expect(failover.nodes.contains("b"), "seed \(seed): \(failover.nodes)")
            #expect(!failover.nodes.contains("c"), "seed \(seed): \(failover.nodes)")
        }
    }

    @Test("a client without nodes makes no attempt") func withoutAnyNodeThere() {
        var failover = Failover(nodes: [], seed: 3)
        #expect(failover.next(nowMs: 0) == nil)
        #expect(failover.peer() == nil)
    }
}
