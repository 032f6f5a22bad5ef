import ReelCore
import ReelLog
import ReelNode
import TestSupport
import Testing

@testable import ReelGateway

/// Tests which claims of another node about a loss a gateway accepts.
@Suite(.timeLimit(.minutes(5)))
struct LossClaimsTests {
    private let epoch = Epoch(1)

    /// Returns a snapshot node that claims a loss. It has folded a record that differs from the log's,
    /// or one where the log has none.
    private func node(
        _ lost: Witness?,
        _ id: String = "s1",
        partition: Int = 0,
        url: String = "http://127.0.0.1:1",
        atMs: Int64
    ) -> NodeAnnouncement {
        var node = NodeAnnouncement(
            id: id,
            role: "snapshot",
            url: url,
            advertised: nil,
            build: "0",
            epoch: epoch,
            atMs: atMs
        )
        node.stops = [.init(role: "snapshot", partition: partition, code: .aheadOfLog, lost: lost)]
        return node
    }

    private func next(_ claims: inout LossClaims) -> LossClaims.Claim? { claims.next(nowMs: 0) }

    private let lost = Witness(seq: 9, hash: 7)
    private let loss = ReelError(.aheadOfLog, "the log ends at 4")

    @Test("a claim is checked once the node has repeated it, and then every ten seconds")
    func checks() throws {
        var claims = LossClaims()
        claims.heard([node(lost, atMs: 1)], of: epoch, partitions: 1)
        #expect(claims.next(nowMs: 0) == nil)
        claims.heard([node(lost, atMs: 1)], of: epoch, partitions: 1)
        #expect(claims.next(nowMs: 0) == nil, "the same announcement, read again")
        claims.heard([node(lost, atMs: 3)], of: epoch, partitions: 1)
        let claim = try #require(next(&claims))
        #expect(claims.next(nowMs: 9_999) == nil)
        #expect(claims.next(nowMs: 10_000) == claim)
    }

    @Test("a confirmed loss counts until no node claims it, and an outage does not revoke it")
    func confirmed() throws {
        var claims = LossClaims()
        for atMs: Int64 in [1, 2] { claims.heard([node(lost, atMs: atMs)], of: epoch, partitions: 2) }
        let claim = try #require(next(&claims))
        #expect(claims.loss(of: 0) == nil, "not before the log was asked")
        claims.answered(claim, .confirmed(loss))
        #expect(claims.loss(of: 0) == loss)
        #expect(claims.loss(of: 1) == nil)
        claims.answered(claim, .unknown)
        #expect(claims.loss(of: 0) == loss)
        claims.heard([], of: epoch, partitions: 2)
        #expect(claims.loss(of: 0) == nil)
    }

    @Test("a refuted claim stops no partition, nor does a claim of a foreign or departed node")
    func refuted() throws {
        var claims = LossClaims()
        for atMs: Int64 in [1, 2] { claims.heard([node(lost, atMs: atMs)], of: epoch, partitions: 1) }
        claims.answered(try #require(next(&claims)), .refuted)
        #expect(claims.loss(of: 0) == nil)
        var left = node(lost, atMs: 5)
        left.hasLeft = true
        for atMs: Int64 in [6, 7] {
            claims.heard([left, node(lost, "s2", partition: 3, atMs: atMs)], of: epoch, partitions: 1)
            #expect(claims.next(nowMs: 1 << 20) == nil)
            claims.heard([node(lost, atMs: atMs)], of: Epoch(2), partitions: 1)
            #expect(claims.next(nowMs: 1 << 20) == nil)
            claims.heard([node(nil, atMs: atMs)], of: epoch, partitions: 1)
            #expect(claims.next(nowMs: 1 << 20) == nil)
        }
    }

    @Test("however many claims there are, a gateway keeps a few")
    func many() {
        var claims = LossClaims()
        for atMs: Int64 in [1, 2] {
            claims.heard((0..<1_000).map { node(lost, "s\($0)", atMs: atMs) }, of: epoch, partitions: 1)
        }
        var asked = 0
        while let claim = claims.next(nowMs: 0) {
            claims.answered(claim, .refuted)
            asked += 1
        }
        #expect(asked == LossClaims.claimsMax)
    }

    @Test("the log itself decides whether it has the claimed record")
    func logChecksClaim() async throws {
        let log = try MemoryLog(partitions: 1)
        let records = (0..<10).map { LogAppend(key: Array("todo".utf8), value: Array("record \($0)".utf8)) }
        await withCheckedContinuation { done in log.append(records, to: 0) { _ in done.resume() } }
        let batch = try log.read(0, from: 7, to: 7, bytes: 1)
        let known = batch.witness(of: try #require(batch.entry(at: 7)))
        func verdict(_ seq: Seq, _ hash: UInt64) -> LossClaims.Verdict {
            LossClaims.Claim(node: "s1", partition: 0, seq: seq, hash: hash).check(in: log)
        }
        func code(_ verdict: LossClaims.Verdict) -> ErrorCode? {
            if case .confirmed(let error) = verdict { error.code } else { nil }
        }
        #expect(verdict(7, known.hash) == .refuted)
        #expect(code(verdict(7, known.hash &+ 1)) == .diverged)
        #expect(code(verdict(10, 1)) == .aheadOfLog)
        for absurd: Seq in [-1, .min, largestInteger, .max, 10 + LossClaims.lossMax] {
            #expect(verdict(absurd, 1) == .refuted, "\(absurd)")
        }
        log.trim(0, before: 8)
        #expect(verdict(7, 1) == .unknown)
        log.lose(0, LogError(.logUnavailable, "nobody answers"))
        #expect(verdict(10, 1) == .unknown)
    }

    @Test("a gateway takes no publishes where another node has witnessed a loss, and takes them again after it")
    func publishes() async throws {
        let memory = try MemoryLog(partitions: 1)
        let health =
            #"{"ready":false,"roles":[{"role":"snapshot","partitions":[{"partition":0,"code":"ahead_of_log"}]}]}"#
        let witness = try RogueServer { _ in
            .text(
                "HTTP/1.1 503 Behind\ncontent-type: application/json\ncontent-length: \(health.utf8.count)\n\n\(health)"
            )
        }
        let url = "http://127.0.0.1:\(witness.port)"
        let log = NeighbourLog(memory, node(nil, url: url, atMs: 0))
        try await LiveGateway.with(log) {
            $0.node.announceMs = 20
        } _: { live in
            func say(_ lost: Witness?) {
                var neighbour = node(lost, url: url, atMs: 0)
                neighbour.epoch = live.log.epoch
                log.neighbour(says: neighbour)
            }
            try await eventually("no publish is taken") {
                say(lost)
                return live.gateway.context.health.refusal(of: 0)?.code == .aheadOfLog
            }
            let ready = try await live.ready()
            #expect(ready.contains(#""log":"ahead_of_log""#), "\(ready)")
            #expect(ready.contains("the node s1 has processed partition 0 to seq 9"), "\(ready)")
            try await eventually("it takes them again") {
                say(nil)
                return live.gateway.context.health.refusal(of: 0) == nil
            }
        }
    }

    @Test(
        "a claim that is in the node list alone stops nothing",
        arguments: [
            nil, "", "{}", #"{"roles":5}"#, "[]", #"{"roles":[{"role":"snapshot","partitions":[{"partition":0}]}]}"#,
            #"{"roles":[{"role":"snapshot","partitions":[{"partition":1,"code":"diverged"}]}]}"#,
            #"{"roles":[{"role":"snapshot","partitions":[{"partition":0,"code":"node_behind"}]}]}"#,
        ]
    )
    func invented(health: String?) async throws {
        let server = try health.map { health in
            try RogueServer { _ in .text("HTTP/1.1 200 OK\ncontent-length: \(health.utf8.count)\n\n\(health)") }
        }
        let url = server.map { "http://127.0.0.1:\($0.port)" } ?? "http://127.0.0.1:1"
        let log = NeighbourLog(try MemoryLog(partitions: 2), node(nil, url: url, atMs: 0))
        try await LiveGateway.with(log) {
            $0.node.announceMs = 20
        } _: { live in
            var neighbour = node(lost, url: url, atMs: 0)
            neighbour.epoch = live.log.epoch
            log.neighbour(says: neighbour)
            try await live.logLines("a node claims a loss and does not repeat it when it is asked", has: 1)
            #expect(live.gateway.context.health.refusal(of: 0) == nil)
            #expect(try await live.ready().contains(#""log":"ok""#))
        }
    }
}
