import EventLogConformance
import Foundation
import ReelCore
import ReelLog
import ReelNet
import ReelNode
import TestSupport
import Testing

@testable import ReelGateway

/// Tests subscriptions and fetches that deliver outcomes with their events.
@Suite(.timeLimit(.minutes(15))) struct OutcomeSubscriptionTests {
    private let todo = StreamName("todo")!
    private let site = Site(high: 1, low: 1)

    private func event(_ op: Int, _ type: String, _ members: String = "") -> [UInt8] {
        EventText.sent(type, site, op, members).bytes
    }

    /// Four events: one is applied, one is rejected, one leaves a gap, and one is a duplicate.
    private var history: [[UInt8]] {
        let insert = event(0, "insert", #""model":"m","id":"a","fields":{"n":1}"#)
        let update = event(1, "update", #""model":"m","id":"none","fields":{"n":1}"#)
        return [insert, update, event(5, "noop"), insert]
    }

    private let words = ["applied", "rejected(no_object)", "gap", "duplicate"]

    /// Returns the seq and the outcome of each event.
    private func told(_ events: [DeliveredEvent]) throws -> [String] {
        try events.map { event in
            let members = try #require(try JSONSerialization.jsonObject(with: Data(event.value)) as? [String: Any])
            return "\(event.seq) \(members["outcome"] as? String ?? "none")"
        }
    }

    private func expected(_ seqs: Range<Int>) -> [String] { seqs.map { "\($0) \(words[$0 % words.count])" } }

    @Test("a subscription with outcomes delivers old and new outcomes in order; a plain one delivers none")
    func deliversOutcomesInOrder() async throws {
        try await StateWay.each { live in
            for event in history { try await live.publish("todo", event) }
            let (asks, plain) = (try await live.connect(), try await live.connect())
            asks.send(.subscribe(.init(stream: todo, position: .after(-1), hasOutcomes: true)))
            plain.send(.subscribe(.init(stream: todo, position: .after(-1))))
            _ = try await asks.nextSubscribed()
            #expect(try told(try await asks.events(of: todo, partition: 0, after: -1, through: 3)) == expected(0..<4))
            for event in history { try await live.publish("todo", event) }
            let next = try told(try await asks.events(of: todo, partition: 0, after: 3, through: 7))
            #expect(next == ["4 duplicate", "5 duplicate", "6 gap", "7 duplicate"])
            let others = try told(try await plain.events(of: todo, partition: 0, after: -1, through: 7))
            #expect(others == (0..<8).map { "\($0) none" })
        }
    }

    @Test("a fetch tells the outcomes of its ranges, and carries its ref")
    func fetches() async throws {
        try await StateWay.each { live in
            for event in history { try await live.publish("todo", event) }
            let socket = try await live.connect()
            socket.send(
                .fetch(.init(stream: todo, epoch: live.log.epoch, ranges: [1...1, 3...3], hasOutcomes: true)),
                ref: "7"
            )
            for seq in [1, 3] {
                let frame = try await socket.next { if case .events = $0.body { true } else { false } }
                guard case .events(let events) = frame.body else { continue }
                #expect(events.from == Seq(seq) && events.to == Seq(seq) && frame.ref == Array("7".utf8))
                #expect(try told(events.events) == expected(seq..<seq + 1))
            }
        }
    }

    @Test("the gateway proves seqs of other streams and does not delay the client's other subscriptions")
    func provesOtherStreams() async throws {
        try await StateWay.each { live in
            let other = StreamName("other")!
            let socket = try await live.connect()
            socket.send(.subscribe(.init(stream: todo, position: .after(-1), hasOutcomes: true)))
            socket.send(.subscribe(.init(stream: other, position: .after(-1))))
            for event in history { try await live.publish("other", event) }
            #expect(try await socket.events(of: other, partition: 0, after: -1, through: 3).count == 4)
            #expect(try await socket.events(of: todo, partition: 0, after: -1, through: 3).isEmpty)
            try await live.publish("todo", history[0])
            let events = try await socket.events(of: todo, partition: 0, after: 3, through: 4)
            #expect(try told(events) == ["4 applied"])
        }
    }

    @Test("while one subscription waits for outcomes, the others of its partition are proven")
    func proofsMeanwhile() async throws {
        let (log, other) = (try MemoryLog(partitions: 1), StreamName("other")!)
        let silent = try FakeNode(nil)
        try log.announce(silent.announcement(as: "silent"))
        try await LiveGateway.with(log, { $0.node.announceMs = 20 }) { live in
            try await live.cluster(contains: "silent")
            let socket = try await live.connect()
            socket.send(.subscribe(.init(stream: other, position: .after(-1))))
            socket.send(.subscribe(.init(stream: todo, position: .after(-1), hasOutcomes: true)))
            try await live.publish("todo", history[0])
            try await eventually("the outcome is asked for") { try silent.asked == 1 }
            try await live.publish("third", history[0])
            var proven = Seq.none
            while proven < 1 {
                let frame = try await socket.next { if case .events = $0.body { true } else { false } }
                guard case .events(let events) = frame.body else { continue }
                #expect(events.stream == other && events.events.isEmpty)
                proven = events.to
            }
            #expect(!socket.heard.contains { if case .upto(_, 0...) = $0.body { true } else { false } })
        }
    }

    @Test("a subscription that ends, is moved or loses its client is followed no longer")
    func ends() async throws {
        try await LiveGateway.with(MemoryLog(partitions: 1)) { live in
            let (socket, leaving) = (try await live.connect(), try await live.connect())
            for socket in [socket, leaving, socket] {
                socket.send(.subscribe(.init(stream: todo, position: .now, hasOutcomes: true)))
                _ = try await socket.nextSubscribed()
            }
            #expect(try await live.outcomeFollowers() == 2)
            socket.send(.unsubscribe(todo))
            _ = try await socket.next { if case .unsubscribed = $0.body { true } else { false } }
            #expect(try await live.outcomeFollowers() == 1)
            leaving.close()
            try await eventually("none is left") { try await live.outcomeFollowers() == 0 }
            #expect(try await live.metric("reel_gateway_http_subscribers") == 0, "they are no HTTP requests")
        }
    }

    @Test("a subscription or fetch with outcomes fails with the reason if no snapshot node exists")
    func noSnapshotNode() async throws {
        try await LiveGateway.with(MemoryLog(partitions: 1)) { live in
            try await live.publish("todo", history[0])
            let socket = try await live.connect()
            socket.send(.subscribe(.init(stream: todo, position: .after(-1), hasOutcomes: true)), ref: "1")
            let error = try await socket.nextError()
            #expect(error.error.code == .nodeBehind && error.stream == todo)
            socket.send(
                .fetch(.init(stream: todo, epoch: live.log.epoch, ranges: [0...0], hasOutcomes: true)),
                ref: "2"
            )
            #expect(try await socket.nextError().error.code == .nodeBehind)
            #expect(!socket.heard.contains { if case .events = $0.body { true } else { false } })
        }
    }

    @Test("frames with outcomes keep to the limit of a frame, though each event grows")
    func frameLimit() async throws {
        try await StateWay.each({ $0.frameBytes = 4_096 }) { live in
            for op in 0..<200 { try await live.publish("todo", event(op, "delete", #""model":"m","id":"a""#)) }
            let socket = try await live.connect()
            socket.send(.subscribe(.init(stream: todo, position: .after(-1), hasOutcomes: true)))
            var (next, frames) = (Seq(0), 0)
            while next < 200 {
                let frame = try await socket.next { if case .events = $0.body { true } else { false } }
                guard case .events(let events) = frame.body else { continue }
                #expect(events.from == next && frame.encoded().count <= 4_096)
                #expect(try told(events.events).allSatisfy { $0.hasSuffix(" rejected(no_object)") })
                (next, frames) = (events.to + 1, frames + 1)
            }
            #expect(frames > 1)
        }
    }
}

extension LiveGateway {
    /// Returns the number of subscriptions with outcomes that receive new events.
    fileprivate func outcomeFollowers() async throws -> Int {
        var count = 0
        for part in gateway.parts { count += try await part.loop.run { part.value.gateway.fanOut.waiters.all.count } }
        return count
    }
}
