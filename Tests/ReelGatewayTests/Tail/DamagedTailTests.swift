import EventLogConformance
import ReelCore
import ReelLog
import ReelNet
import ReelNode
import Synchronization
import TestSupport
import Testing

@testable import ReelGateway

/// Tests a gateway whose tail has met a damaged record.
@Suite(.timeLimit(.minutes(5)))
struct DamagedTailTests {
    private let todo = StreamName("todo")!
    private let site = Site(high: 1, low: 1)

    /// A log in which a record becomes damaged during the test; no tail and no read passes it.
    private final class Damaged: ForwardingLog {
        let memory: MemoryLog
        let log: any EventLog
        private let first = Mutex<Seq?>(nil)

        init(_ memory: MemoryLog) { (self.memory, log) = (memory, memory) }

        private var error: LogError { LogError(.damaged, "the record at seq 3 of partition 0 is damaged") }

        func damage(at seq: Seq) {
            first.withLock { $0 = seq }
            memory.breakTails(0, error)
        }

        func tail(_ partition: Int, from: Seq, to sink: any LogSink) -> any LogTail {
            guard first.withLock({ $0 }) != nil else { return log.tail(partition, from: from, to: sink) }
            let tail = TailHandle(partition: partition, from: from, sink: sink)
            tail.fail(error)
            return tail
        }

        func read(_ partition: Int, from: Seq, to: Seq, bytes: Int) throws(LogError) -> RecordBatch {
            if let seq = first.withLock({ $0 }), from >= seq { throw error }
            return try log.read(partition, from: from, to: to, bytes: bytes)
        }
    }

    @Test("the gateway answers with records before a damaged record and reports damage for later records")
    func reportsDamagedRecord() async throws {
        let memory = try MemoryLog(partitions: 1)
        let log = Damaged(memory)
        try await LiveGateway.with(log, { $0.behindMs = 200 }) { live in
            for op in 0..<3 { try await live.publish("todo", Sent.insert(site, Op(op), "x")) }
            log.damage(at: 3)
            try await eventually("the gateway has met it") { try await live.ready().contains("damaged") }
            memory.append([LogAppend(key: todo.key, value: Batches.value(site, 3, "y"))], to: 0) { _ in }
            try await live.log(holds: 3, in: 0)
            let path = "/v1/streams/todo/events"
            #expect(try await live.get(path).status == 200)
            for query in ["?after=2", "?after=3", "?after=2&wait=5"] {
                let answer = try await live.get(path + query)
                #expect(answer.status == 500, "\(query): \(String(decoding: answer.body, as: UTF8.self))")
                #expect(String(decoding: answer.body, as: UTF8.self).contains(#""code":"damaged""#), "\(query)")
            }
            let socket = try await live.connect()
            socket.send(.fetch(.init(stream: todo, epoch: live.log.epoch, ranges: [3...3])))
            #expect(try await socket.nextError().error.code == .damaged)
        }
    }
}
