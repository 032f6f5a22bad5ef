import Foundation
import ReelCore
import ReelLog
import ReelNet
import ReelNode
import Synchronization
import Testing

@testable import ReelGateway

/// Tests that the answers to clients during a failure of the log are correct.
@Suite(.timeLimit(.minutes(15))) struct FaultTests {
    let todo = StreamName("todo")!
    let site = Site(high: 1, low: 1)
    static let away = LogError(.logUnavailable, "the disk is away")

    func publish(_ socket: TestSocket, _ ops: ClosedRange<Op>) {
        socket.send(.publish(.init(stream: todo, events: ops.map { Sent.insert(site, $0, "a\($0)") })))
    }

    /// Returns the seqs at which an op stands in the log.
    func places(_ log: any EventLog, _ op: Op) throws -> [Seq] {
        let partition = todo.partition(of: log.partitions)
        let end = try log.bounds(partition).last
        guard end >= 0 else { return [] }
        let batch = try log.read(partition, from: 0, to: end, bytes: 1 << 20)
        return batch.entries.filter { entry in
            batch.withRecord(entry) { String(decoding: $1, as: UTF8.self).contains(#""op":\#(op),"#) }
        }.map(\.seq)
    }

    /// Returns once the gateway has answered all earlier frames of the socket.
    func settle(_ socket: TestSocket) async throws {
        socket.send(.unsubscribe(StreamName("none")!))
        _ = try await socket.next { if case .unsubscribed = $0.body { true } else { false } }
    }

    @Test("no ack before the record was read back") func noAckBeforeThe() async throws {
        let log = try MemoryLog()
        try await LiveGateway.with(log) { live in
            let socket = try await live.connect()
            log.stall(todo.partition(of: log.partitions))
            publish(socket, 0...0)
            while try places(log, 0).isEmpty { try await settle(socket) }
            try await settle(socket)
            #expect(socket.heard.isEmpty, "it is in the log and reported, but not read back")
            log.resume(todo.partition(of: log.partitions))
            #expect(try await socket.nextAck().acks.map(\.seq) == places(log, 0))
        }
    }

    @Test("no ack before the log reports") func noAckBeforeTheLog() async throws {
        let log = try MemoryLog()
        try await LiveGateway.with(log) { live in
            let (socket, reader) = (try await live.connect(), try await live.connect())
            reader.send(.subscribe(.init(stream: todo, position: .after(-1))))
            let partition = try await reader.nextSubscribed().partition
            log.onAppend { _, _ in .late }
            publish(socket, 0...0)
            #expect(try await reader.events(of: todo, partition: partition, after: -1, through: 0).count == 1)
            try await settle(socket)
            #expect(socket.heard.isEmpty, "everybody has read it, but the log has not reported it")
            log.answerLate()
            #expect(try await socket.nextAck().acks.map(\.seq) == [0])
        }
    }

    @Test("the gateway nacks a failed append and nacks the later ops as gaps") func nacksFailedAppend() async throws {
        let log = try MemoryLog()
        try await LiveGateway.with(log) { live in
            let socket = try await live.connect()
            log.onAppend { _, _ in .fail(Self.away) }
            publish(socket, 0...1)
            let (first, second) = (try await socket.nextNack(), try await socket.nextNack())
            #expect(first.op == 0 && first.error.code == .logUnavailable && first.error.retryMs == 1_000)
            #expect(second.op == 1 && second.error.code == .gap && second.error.retryMs == 0)
            log.onAppend(nil)
            publish(socket, 1...1)
            #expect(try await socket.nextNack().error.code == .gap)
            publish(socket, 0...1)
            #expect(try await socket.nextAck().acks.map(\.seq) == [0, 1])
        }
    }

    @Test("a nacked event that is in the log blocks no later op and can be published again")
    func nackedEventBlocksNothing() async throws {
        let log = try MemoryLog()
        try await LiveGateway.with(log) { live in
            let (socket, reader) = (try await live.connect(), try await live.connect())
            reader.send(.subscribe(.init(stream: todo, position: .after(-1))))
            let partition = try await reader.nextSubscribed().partition
            log.onAppend { _, _ in .appendedButFailed(Self.away) }
            publish(socket, 0...0)
            #expect(try await socket.nextNack().error.code == .logUnavailable)
            log.onAppend(nil)
            _ = try await reader.events(of: todo, partition: partition, after: -1, through: 0)
            publish(socket, 1...1)
            #expect(try await socket.nextAck().acks.map(\.seq) == [1], "the client's fold has consumed op 0")
            publish(socket, 0...0)
            let seq = try await socket.nextAck().acks[0].seq
            #expect(try places(log, 0) == [0, 2] && seq == 2, "at a place of its own")
        }
    }

    @Test("a resend of an event that was not consumed is appended again") func aResendOfAn() async throws {
        let log = try MemoryLog()
        try await LiveGateway.with(log) { live in
            let socket = try await live.connect()
            publish(socket, 1...1)
            #expect(try await socket.nextAck().acks.map(\.seq) == [0], "a gap for the fold")
            publish(socket, 0...1)
            #expect(try await socket.nextAck().acks.map(\.seq) == [1, 2])
            socket.send(.publish(.init(stream: todo, events: [Sent.insert(site, 2, "first")])))
            _ = try await socket.nextAck()
            socket.send(.publish(.init(stream: todo, events: [Sent.insert(site, 4, "first")])))
            _ = try await socket.nextAck()
            socket.send(.publish(.init(stream: todo, events: [Sent.insert(site, 4, "second")])))
            #expect(try await socket.nextAck().acks.map(\.seq) == [5], "nobody has consumed the first op 4")
        }
    }

    @Test("the gateway acks a record that the log holds twice at a seq of that record") func acksDoubledRecord()
        async throws
    {
        let log = try MemoryLog()
        try await LiveGateway.with(log) { live in
            let socket = try await live.connect()
            log.onAppend { _, _ in .twice }
            publish(socket, 0...0)
            let seq = try await socket.nextAck().acks[0].seq
            #expect(try places(log, 0).contains(seq))
        }
    }

    @Test("another event under the same op is a conflict") func anotherEventUnderThe() async throws {
        let log = try MemoryLog()
        try await LiveGateway.with(log) { live in
            let socket = try await live.connect()
            publish(socket, 0...0)
            _ = try await socket.nextAck()
            socket.send(.publish(.init(stream: todo, events: [Sent.insert(site, 0, "other")])))
            let nack = try await socket.nextNack()
            #expect(nack.error.code == .conflict && nack.error.retryMs == nil)
            #expect(try places(log, 0).count == 1)
        }
    }

    @Test("a log that went backwards is diverged and nothing is served") func aLogThatWent() async throws {
        let log = try MemoryLog()
        try await LiveGateway.with(log) { live in
            let socket = try await live.connect()
            publish(socket, 0...2)
            _ = try await socket.nextAck()
            log.rollBack(todo.partition(of: log.partitions), to: 1)
            publish(socket, 3...3)
            #expect(try await socket.nextNack().error.code == .diverged)
            socket.send(.subscribe(.init(stream: todo, position: .after(-1))))
            #expect(try await socket.nextError().error.code == .diverged)
            #expect(try await live.get("/v1/streams/todo/events").status == 409)
            let ready = try await live.get("/readyz")
            #expect(ready.status == 503 && String(decoding: ready.body, as: UTF8.self).contains(#""log":"diverged""#))
        }
    }

    @Test("the gateway answers an HTTP publish of unknown outcome with a request to retry") func unknownOutcomeRetries()
        async throws
    {
        let log = try MemoryLog()
        try await LiveGateway.with(log, { $0.publishMs = 10 }) { live in
            log.onAppend { _, _ in .late }
            let body = #"{"events":[\#(String(decoding: Sent.insert(site, 0, "a"), as: UTF8.self))]}"#
            let answer = try await live.ask(
                "POST",
                "/v1/streams/todo/events",
                body: body,
                headers: ["content-type": "application/json"]
            )
            #expect(answer.status == 503 && answer.headers["retry-after"] == "1")
            #expect(String(decoding: answer.body, as: UTF8.self).contains(#""code":"log_unavailable""#))
            log.onAppend(nil)
            log.answerLate()
            let socket = try await live.connect()
            publish(socket, 1...1)
            #expect(try await socket.nextAck().acks.map(\.seq) == [1], "the late answer concerns nobody")
        }
    }

    @Test("a tail that trimming has overtaken continues at the first seq") func trimmedTailContinues() async throws {
        let log = try MemoryLog(partitions: 1)
        try await LiveGateway.with(log) { live in
            let (socket, reader) = (try await live.connect(), try await live.connect())
            reader.send(.subscribe(.init(stream: todo, position: .after(-1))))
            _ = try await reader.nextSubscribed()
            publish(socket, 0...0)
            #expect(try await reader.events(of: todo, partition: 0, after: -1, through: 0).count == 1)
            _ = try await socket.nextAck()
            log.stall(0)
            publish(socket, 1...3)
            while try log.bounds(0).last < 3 { try await settle(socket) }
            log.trim(0, before: 3)
            log.resume(0)
            let error = try await reader.nextError()
            #expect(error.error.code == .truncated && error.first == 3)
            #expect(try await socket.nextNack().error.retryMs == 0, "it may be in the log; nobody here has read it")
            #expect(try await live.metric("reel_gateway_trimmed_ranges_total") == 1)
            #expect(try await live.ready().contains(#""skipped_to":3"#))
            reader.send(.subscribe(.init(stream: todo, position: .after(2), epoch: log.epoch)))
            #expect(try await reader.events(of: todo, partition: 0, after: 2, through: 3).map(\.seq) == [3])
            publish(socket, 1...1)
            #expect(try await socket.nextAck().acks.map(\.seq) == [4])
        }
    }

    @Test("the gateway accepts no event after the end of an epoch") func refusesAfterEpochEnd() async throws {
        let log = try MemoryLog(partitions: 1)
        let next = Epoch(0x77)
        try await LiveGateway.with(log) { live in
            let (socket, reader) = (try await live.connect(), try await live.connect())
            reader.send(.subscribe(.init(stream: todo, position: .after(-1))))
            _ = try await reader.nextSubscribed()
            log.stall(0)
            log.append([LogAppend(key: Array("~reel".utf8), value: Barrier.end(next).value)], to: 0) { _ in }
            publish(socket, 0...0)
            while try log.bounds(0).last < 1 { try await settle(socket) }
            log.resume(0)
            #expect(try await socket.nextNack().error.code == .epochChanged, "it landed behind the end")
            #expect(try await reader.events(of: todo, partition: 0, after: -1, through: 1).count == 1)
            publish(socket, 0...0)
            let nack = try await socket.nextNack()
            #expect(nack.error.code == .epochChanged && nack.error.message.contains("\(next)"))
            let body = #"{"events":[\#(String(decoding: Sent.insert(site, 0, "a"), as: UTF8.self))]}"#
            let answer = try await live.ask("POST", "/v1/streams/todo/events", body: body)
            #expect(answer.status == 409)
            #expect(String(decoding: answer.body, as: UTF8.self).contains(#""epoch":"\#(next)""#))
            let ready = try await live.get("/readyz")
            #expect(ready.status == 200 && String(decoding: ready.body, as: UTF8.self).contains(#""log":"ended""#))
        }
    }

    @Test("an unknown barrier in the old log ends the read there") func anUnknownBarrierIn() async throws {
        let log = try MemoryLog(partitions: 1)
        let values = (0..<4).map { Batches.value(site, Op($0), "x") }
        var records = values.map { LogAppend(key: todo.key, value: $0) }
        records[1] = LogAppend(key: Array("~reel".utf8), value: Array(#"{"fold":2,"type":"barrier"}"#.utf8))
        // The last record's witness is the record before it, so a starting gateway begins at the last record.
        let hash = todo.key.withUnsafeBytes { key in values[2].withUnsafeBytes { FNV1a.record(key: key, value: $0) } }
        records[3].witness = Witness(seq: 2, hash: hash)
        log.append(records, to: 0) { _ in }
        try await LiveGateway.with(log, { $0.warmRecords = 1 }) { live in
            let socket = try await live.connect()
            socket.send(.subscribe(.init(stream: todo, position: .after(-1))))
            #expect(try await socket.events(of: todo, partition: 0, after: -1, through: 0).count == 1)
            #expect(try await socket.nextError().error.code == .internal)
            #expect(try await live.get("/v1/streams/todo/events").status == 500)
        }
    }

    @Test("two gateways on one file show everybody the same order") func twoGatewaysOnOne() async throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("reel-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let path = folder.appendingPathComponent("log.sqlite").path
        let count: Op = 200
        try await LiveGateway.with(try SQLiteLog(path: path, partitions: 1)) { one in
            try await LiveGateway.with(try SQLiteLog(path: path), { $0.node.loops = 2 }) { two in
                var readers: [TestSocket] = []
                for live in [one, two, two] {
                    let reader = try await live.connect()
                    reader.send(.subscribe(.init(stream: todo, position: .after(-1))))
                    _ = try await reader.nextSubscribed()
                    readers.append(reader)
                }
                let acked = try await withThrowingTaskGroup(of: [Site: [Seq]].self) { group in
                    for (index, live) in [one, two].enumerated() {
                        group.addTask {
                            let site = Site(high: 1, low: UInt64(index))
                            let writer = try await live.connect()
                            for op in 0..<count {
                                writer.send(
                                    .publish(.init(stream: todo, events: [Sent.insert(site, op, "\(index)-\(op)")]))
                                )
                            }
                            var seqs: [Seq] = []
                            while seqs.count < Int(count) { seqs += try await writer.nextAck().acks.map(\.seq) }
                            return [site: seqs]
                        }
                    }
                    return try await group.reduce(into: [:]) { $0.merge($1) { a, _ in a } }
                }
                let batch = try one.log.read(0, from: 0, to: Seq(2 * count - 1), bytes: 16 << 20)
                let truth = batch.entries.map { entry in batch.withRecord(entry) { Array($1) } }
                #expect(truth.count == Int(2 * count))
                for reader in readers {
                    let events = try await reader.events(of: todo, partition: 0, after: -1, through: Seq(2 * count - 1))
                    #expect(events.map(\.seq) == Array(0..<Seq(2 * count)))
                    #expect(events.map(\.value) == truth, "the bytes of the log")
                }
                for (site, seqs) in acked {
                    #expect(seqs == seqs.sorted() && Set(seqs).count == Int(count))
                    for (op, seq) in seqs.enumerated() {
                        var event = ParsedEvent()
                        try truth[Int(seq)].withUnsafeBytes { (value) throws in try event.parse(value) }
                        #expect(event.site == site && event.op == Op(op), "acked at the seq where it stands")
                    }
                }
            }
        }
    }
}
