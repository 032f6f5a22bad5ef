import EventLogConformance
import NodeTestSupport
import ReelCore
import ReelLog
import ReelNet
import ReelNode
import Synchronization
import TestSupport
import Testing

@testable import ReelGateway

/// Tests a node that has reached its memory limit.
@Suite(.timeLimit(.minutes(15))) struct MemoryLimitTests {
    private final class Memory: Sendable {
        let bytes = Atomic<Int>(0)
    }

    @Test("nothing new is taken in until there is memory again") func nothingNewIsTaken() async throws {
        let (memory, site, todo) = (Memory(), Site(high: 1, low: 1), StreamName("todo")!)
        try await LiveGateway.with(MemoryLog(partitions: 1)) {
            $0.node.memoryBytes = 1_000
            $0.node.memoryUse = { memory.bytes.load(ordering: .relaxed) }
        } _: { live in
            let inside = try await live.connect()
            let large = try RawSocket(live.gateway.address)
            #expect(large.send("POST /v1/streams/todo/events HTTP/1.1\r\nHost: a\r\nContent-Length: 50000\r\n\r\n"))
            try await eventually("the large one is inside, too") {
                try await live.metric("reel_node_connections") ?? 0 >= 3
            }
            inside.send(.subscribe(.init(stream: todo, position: .now)))
            _ = try await inside.nextSubscribed()
            memory.bytes.store(1_001, ordering: .relaxed)
            try await eventually("it is noticed") { live.gateway.context.gate.lacksMemory }
            await #expect(throws: (any Error).self) { try await live.open() }
            inside.send(.publish(.init(stream: todo, events: [Sent.insert(site, 0, "a")])))
            let nack = try await inside.nextNack()
            #expect(nack.error.code == .overloaded)
            #expect(nack.error.retryMs == 1_000)
            #expect(large.send(String(repeating: " ", count: 20_000)))
            let answer = large.receiveAll()
            #expect(answer.hasPrefix("HTTP/1.1 503 ") && answer.contains(#""code":"overloaded""#), "\(answer)")
            #expect(answer.contains("retry-after: 1\r\n"), "\(answer)")
            #expect(!live.logLines("the memory limit is reached: nothing new is taken").isEmpty)

            memory.bytes.store(1_000, ordering: .relaxed)
            try await eventually("there is room") { !live.gateway.context.gate.lacksMemory }
            inside.send(.publish(.init(stream: todo, events: [Sent.insert(site, 0, "a")])))
            #expect(try await inside.nextAck().acks.count == 1)
            let later = try await live.connect()
            later.send(.subscribe(.init(stream: todo, position: .after(-1))))
            #expect(try await later.events(of: todo, partition: 0, after: -1, through: 0).map(\.seq) == [0])
            let refused = try await live.metric(#"reel_node_refused_connections_total{limit="memory"}"#)
            #expect(refused ?? 0 >= 1)
        }
    }
}
