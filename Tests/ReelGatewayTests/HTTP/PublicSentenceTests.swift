import EventLogConformance
import Foundation
import ReelCore
import ReelLog
import ReelNet
import ReelNode
import TestSupport
import Testing

@testable import ReelGateway

/// Tests that errors of the log name no file and no address to clients, and that `/readyz`
/// gives operators the whole text.
@Suite(.timeLimit(.minutes(5))) struct PublicSentenceTests {
    private let todo = StreamName("todo")!
    private let secret = "/secret/log.sqlite"

    @Test("a partition with a damaged record refuses publishes with a sentence for clients")
    func standstill() async throws {
        try await LiveGateway.with(try MemoryLog(partitions: 1)) { live in
            let (code, context) = (ErrorCode.damaged, live.gateway.context)
            context.health.reading(0, fails: ReelError(code, "\(secret): row 4"))
            for told in [context.health.refusal(of: 0), context.health.standstill(of: 0)] {
                #expect(told?.code == code && told?.message.contains("secret") == false, "\(told as Any)")
            }
            let body = #"{"events":[{"site":"00000000-0000-4000-8000-000000000001","op":0,"type":"noop"}]}"#
            let answer = try await live.ask("POST", "/v1/streams/todo/events", body: body)
            let text = String(decoding: answer.body, as: UTF8.self)
            #expect(answer.status >= 500 && text.contains(code.rawValue) && !text.contains("secret"), "\(text)")
            #expect(try await live.ready().contains(secret), "the operator reads it")
        }
    }

    @Test("the gateway reports a diverged log to clients without the names of its files")
    func divergence() async throws {
        try await LiveGateway.with(try MemoryLog(partitions: 1)) { live in
            let socket = try await live.connect()
            socket.send(.subscribe(.init(stream: todo, position: .now)))
            _ = try await socket.next { if case .subscribed = $0.body { true } else { false } }
            live.gateway.context.health.diverged(ReelError(.internal, "\(secret) is another one"))
            #expect(live.gateway.context.health.divergence?.message.contains("secret") == false)
            #expect(try await !socket.nextError().error.message.contains("secret"))
        }
    }

    @Test("without an operator's rights, /readyz gives the code of a stop, and no sentence")
    func reason() {
        let stop = PartitionHealth.Stop(.damaged, "\(secret): row 4")
        let role = RoleHealth(.snapshot, log: .unavailable, partitions: [PartitionHealth(seq: 1, goal: 1, stop: stop)])
        func body(_ forOperator: Bool) -> String {
            String(decoding: NodeHealth([role]).body(epoch: Epoch(1), forOperator: forOperator), as: UTF8.self)
        }
        #expect(body(true).contains(secret))
        #expect(!body(false).contains("secret"))
        #expect(body(false).contains(#""reason":"partition 0 has stopped: damaged""#), "\(body(false))")
    }

    @Test("the gateway hides the address of an unresponsive snapshot node from clients, and logs it")
    func hidesNodeAddress() async throws {
        let log = NeighbourLog(try MemoryLog(partitions: 1), role: "snapshot")
        try await LiveGateway.with(log) {
            $0.node.announceMs = 20
            $0.outcomeMs = 5_000
        } _: { live in
            try await eventually("the snapshot node is known") {
                live.gateway.announcer.nodes.contains { $0.role == "snapshot" }
            }
            let body = #"{"events":[{"site":"00000000-0000-4000-8000-000000000001","op":0,"type":"noop"}]}"#
            let answer = try await live.ask("POST", "/v1/streams/todo/events?outcome=1", body: body)
            let text = String(decoding: answer.body, as: UTF8.self)
            #expect(answer.status == 503 && !text.contains("127.0.0.1"), "\(text)")
            try await eventually("the journal says which") {
                live.logLines("a snapshot node does not answer").contains { $0.contains("127.0.0.1:1") }
            }
        }
    }
}
