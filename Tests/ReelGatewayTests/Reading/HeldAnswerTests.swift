import EventLogConformance
import ReelCore
import ReelLog
import ReelNet
import ReelNode
import TestSupport
import Testing

@testable import ReelGateway

/// Tests a gateway while its log has not answered yet.
@Suite(.timeLimit(.minutes(15))) struct HeldAnswerTests {
    private let todo = StreamName("todo")!
    private let site = Site(high: 1, low: 1)
    private let path = "/v1/streams/todo/events"

    /// Runs the body with a gateway whose ring holds the last of the three events in the log.
    private func with(_ body: (LiveGateway, HeldLog) async throws -> Void) async throws {
        let log = HeldLog(try MemoryLog(partitions: 1))
        try await LiveGateway.with(log, { $0.ringBytes = 1 }) { live in
            for op in 0..<3 { try await live.publish("other", Sent.insert(site, Int64(op), "\(op)")) }
            do {
                try await body(live, log)
            } catch {
                log.release()
                throw error
            }
        }
    }

    @Test("the gateway reads a range once for all subscriptions of a client") func readsOnceForClient() async throws {
        try await with { live, log in
            let socket = try await live.connect()
            log.hold()
            for turn in 0..<100 {
                // One subscribe repeats the same stream; the other one is followed by an unsubscribe.
                let brief = StreamName("brief\(turn)")!
                for stream in [todo, brief] { socket.send(.subscribe(.init(stream: stream, position: .after(-1)))) }
                socket.send(.unsubscribe(brief))
            }
            for _ in 0..<200 { _ = try await socket.nextSubscribed() }
            try await eventually("the read is under way") { log.waitingReads == 1 }
            log.release()
            #expect(try await socket.events(of: todo, partition: 0, after: -1, through: 2).isEmpty)
            #expect(log.reads == 1)
        }
    }

    @Test("all subscriptions of a client have their turn") func allSubscriptionsOfA() async throws {
        try await with { live, log in
            let socket = try await live.connect()
            let count = 5 * ReadAccount.operationsMax
            log.hold()
            for index in 0..<count {
                socket.send(.subscribe(.init(stream: StreamName("s\(index)")!, position: .after(-1))))
            }
            for _ in 0..<count { _ = try await socket.nextSubscribed() }
            log.release()
            for index in 0..<count {
                try await live.publish("s\(index)", Sent.insert(site, 0, "a"))
                let frame = try await socket.next { frame in
                    if case .events(let events) = frame.body { !events.events.isEmpty } else { false }
                }
                guard case .events(let events) = frame.body else { return }
                #expect(events.stream.description == "s\(index)" && events.to == Seq(3 + index))
            }
        }
    }

    @Test("a long poll misses no event that comes while the log is read") func aLongPollMisses() async throws {
        try await with { live, log in
            log.hold()
            let poll = try live.reader(path + "?wait=1000")
            try await eventually("the log is read") { log.waitingReads == 1 }
            try await live.publish("todo", Sent.insert(site, 0, "a"))
            log.release()
            try await eventually("an answer, or a sleep") {
                poll.hasEnded || live.gateway.context.meters.streamWaiters.value == 1
            }
            #expect(MessageReader.Message(data: poll.text).seqs == [3])
        }
    }

    @Test("a long poll receives an error when the log diverges during its read") func divergedLongPoll() async throws {
        try await with { live, log in
            log.hold()
            let poll = try live.reader(path + "?wait=1000")
            try await eventually("the log is read") { log.waitingReads == 1 }
            live.gateway.context.health.diverged(ReelError(.diverged, "found another record"))
            log.release()
            try await eventually("an answer, or a sleep") {
                poll.hasEnded || live.gateway.context.meters.streamWaiters.value == 1
            }
            #expect(poll.head?.status == 409)
        }
    }

    @Test("a client that waits for a seq receives an error when the log diverges") func divergedSeqWait()
        async throws
    {
        try await with { live, log in
            let socket = try await live.connect()
            log.hold()
            socket.send(.subscribe(.init(stream: todo, position: .after(3), epoch: log.epoch)))
            try await eventually("the log is asked for its end") { log.waitingForEnds > 0 }
            try await live.publish("todo", Sent.insert(site, 0, "a"))
            live.gateway.context.health.diverged(ReelError(.diverged, "found another record"))
            log.release()
            let answer = try await socket.next { frame in
                switch frame.body {
                case .error, .subscribed: true
                default: false
                }
            }
            guard case .error(let failure) = answer.body else {
                Issue.record("found \(answer)")
                return
            }
            #expect(failure.error.code == .diverged)
        }
    }

    @Test("fetches in progress receive an error when the log diverges") func divergedFetches() async throws {
        try await with { live, log in
            let socket = try await live.connect()
            log.hold()
            // The second range is in the ring, so the gateway could answer it immediately.
            for seq in [0...0, 2...2] as [ClosedRange<Seq>] {
                socket.send(.fetch(.init(stream: todo, epoch: log.epoch, ranges: [seq])))
            }
            try await eventually("the log is read") { log.waitingReads == 1 }
            // The answer to `unsubscribe` shows that the gateway has received both fetches.
            socket.send(.unsubscribe(todo))
            _ = try await socket.next { if case .unsubscribed = $0.body { true } else { false } }
            live.gateway.context.health.diverged(ReelError(.diverged, "found another record"))
            log.release()
            for _ in 0..<2 { #expect(try await socket.nextError().error.code == .diverged) }
            #expect(socket.heard.isEmpty, "no piece of them is answered")
        }
    }

    @Test("a node that ends answers a long poll that has not begun to wait") func aNodeThatEnds() async throws {
        try await with { live, log in
            log.hold()
            let poll = try live.reader(path + "?wait=1000")
            try await eventually("the log is read") { log.waitingReads == 1 }
            live.gateway.end.begin()
            try await eventually("it leaves") { live.gateway.context.health.isLeaving }
            log.release()
            try await eventually("an answer, or a sleep") {
                poll.hasEnded || live.gateway.context.meters.streamWaiters.value == 1
            }
            #expect(poll.head?.status == 200)
            #expect(MessageReader.Message(data: poll.text).member("to") == "2")
        }
    }
}
