import EventLogConformance
import Foundation
import ReelCore
import ReelLog
import ReelNet
import TestSupport
import Testing

@testable import ReelGateway

/// Tests `GET …/events` and blocks with long ranges and with filters by model.
@Suite(.timeLimit(.minutes(15))) struct RangeTests {
    private let own = Site(high: 1, low: 1)
    private let other = Site(high: 2, low: 2)
    private let path = "/v1/streams/todo/events"

    private func insert(_ site: Site, _ op: Int, _ model: String, _ text: String = "x") -> [UInt8] {
        let members = #""model":"\#(model)","id":"\#(site)-\#(op)","fields":{"text":"\#(text)"}"#
        return EventText.sent("insert", site, op, members).bytes
    }

    private func answer(_ live: LiveGateway, _ query: String) async throws -> MessageReader.Message {
        MessageReader.Message(data: try await live.text(path + query))
    }

    // MARK: Long ranges

    /// Returns a log of which a starting gateway keeps only the last record. The gateway reads
    /// each of the others separately.
    private func log(_ count: Int) async throws -> DamagedLog {
        let log = try MemoryLog(partitions: 1)
        let todo = StreamName("todo")!
        let text = String(repeating: "x", count: 70_000)
        var witness: Witness?
        let records = (0..<count).map { op in
            let value = Batches.value(own, Op(op), text, base: Seq(op) - 1)
            defer { witness = Witness(seq: Seq(op), hash: FNV1a.record(todo, value)) }
            return LogAppend(key: todo.key, value: value, witness: witness)
        }
        let _: Void = try await withCheckedThrowingContinuation { continuation in
            log.append(records, to: 0) { continuation.resume(with: $0.map { _ in () }) }
        }
        return DamagedLog(log)
    }

    @Test("a long answer that fails on its way proves what it holds") func aLongAnswerThat() async throws {
        let log = try await log(20)
        try await LiveGateway.with(log, { $0.warmRecords = 1 }) { live in
            log.damaged = 7
            let part = try await answer(live, "")
            #expect(part.seqs == Array(0..<7))
            #expect(part.member("to") == "6" && part.member("head") == "19")
            #expect(try await live.get(path + "?after=6").status == 503, "who goes on is told why")
            log.damaged = nil
            #expect(try await answer(live, "?after=6").seqs == Array(7..<20))
        }
    }

    @Test("an answer ends at its limits") func anAnswerEndsAt() async throws {
        let log = try await log(80)
        try await LiveGateway.with(log, { $0.warmRecords = 1 }) { live in
            let most = try await answer(live, "")
            let to = try #require(Int(most.member("to") ?? ""))
            #expect(most.seqs == Array(0...to) && (50..<70).contains(to), "about 4 MiB")
            #expect(try await answer(live, "?limit=17").seqs == Array(0..<17))
        }
    }

    // MARK: Filters by model

    /// Publishes six events: those of `task` have the seqs 0 and 4, those of the own site 2 and 4.
    private func publish(to live: LiveGateway) async throws {
        for (site, op, model) in [
            (other, 0, "task"), (other, 1, "note"), (own, 0, "note"), (other, 2, "a"), (own, 1, "task"),
            (other, 3, "a"),
        ] {
            try await live.publish("todo", insert(site, op, model))
        }
    }

    @Test("models are asked for by name and all is proven", arguments: [32 << 20, 1])
    func modelsAreAskedFor(ringBytes: Int) async throws {
        try await LiveGateway.with(MemoryLog(partitions: 1)) {
            $0.ringBytes = ringBytes
        } _: { live in
            try await publish(to: live)
            for (query, seqs) in [
                ("?models=task", [0, 4]), ("?models=task&site=\(own)", [0, 2, 4]), ("?models=task,note", [0, 1, 2, 4]),
                ("?models=task%2Cnote&after=0&epoch=\(live.log.epoch)", [1, 2, 4]), ("?models=none", []),
                ("?models=&site=\(own)", [2, 4]), ("?models=t%61sk&limit=1", [0]),
            ] {
                let found = try await answer(live, query)
                #expect(found.seqs == seqs, "\(query)")
                if !query.contains("limit") { #expect(found.member("to") == "5", "\(query)") }
            }
            let many = Array(repeating: "m", count: EventFilter.modelsMax + 1).joined(separator: ",")
            for query in [
                "models=\(many)", "models=a,", "models=a,,b", "site=\(own)", "models=a&site=x", "models=a&models=b",
            ] {
                #expect(try await live.get(path + "?" + query).status == 400, "\(query)")
            }
        }
    }

    @Test("a long poll waits for what is wanted") func aLongPollWaits() async throws {
        try await LiveGateway.with(MemoryLog(partitions: 1)) { live in
            try await publish(to: live)
            let poll = try live.reader(path + "?after=5&epoch=\(live.log.epoch)&models=task&site=\(own)&wait=1000")
            try await live.streamWaiters(are: 1)
            try await live.publish("todo", insert(other, 4, "note"))
            try await live.streamWaiters(are: 1)
            #expect(poll.head == nil, "another model's event is none of its")
            try await live.publish("todo", insert(own, 2, "note"))
            try await eventually("an answer") { poll.hasEnded }
            let answer = MessageReader.Message(data: poll.text)
            #expect(answer.seqs == [7] && answer.member("from") == "6" && answer.member("to") == "7")
        }
    }

    @Test("messages of some models prove what they leave out") func messagesOfSomeModels() async throws {
        try await LiveGateway.with(MemoryLog(partitions: 1)) { live in
            try await publish(to: live)
            let reader = try live.reader(path + "?models=task", ["accept": "text/event-stream"])
            let whole = try live.reader(path, ["accept": "text/event-stream"])
            _ = try await reader.messages("what was there") { $0.flatMap(\.seqs) == [0, 4] }
            try await live.publish("todo", insert(other, 4, "note"))
            try await live.publish("todo", insert(other, 5, "task"))
            let messages = try await reader.messages("what comes") { $0.last?.member("to") == "7" }
            #expect(messages.flatMap(\.seqs) == [0, 4, 7])
            var proven = -1
            for message in messages {
                #expect(message.member("from") == "\(proven + 1)", "each goes on where the one before ended")
                proven = Int(message.member("to") ?? "") ?? -2
            }
            let all = try await whole.messages("all of it") { $0.last?.member("to") == "7" }
            #expect(all.flatMap(\.seqs) == Array(0...7), "the others' messages are not theirs")
        }
    }

    @Test("readers of other models at the same seq get their own messages") func readersOfOtherModels() async throws {
        try await LiveGateway.with(MemoryLog(partitions: 1)) { live in
            let readers = try ["task", "note"].map {
                try live.reader(path + "?models=\($0)", ["accept": "text/event-stream"])
            }
            try await live.streamWaiters(are: 2)
            // Both events are in one batch, and each reader gets the proof of the whole range.
            let both = insert(other, 0, "task") + Array(",".utf8) + insert(other, 1, "note")
            try await live.publish("todo", both)
            for (index, reader) in readers.enumerated() {
                let messages = try await reader.messages("its event") { !$0.flatMap(\.seqs).isEmpty }
                #expect(messages.last?.seqs == [index] && messages.last?.member("to") == "1")
            }
        }
    }

    /// The range has more events than the loop examines in one turn.
    @Test("a long way without anything wanted is proven") func aLongWayWithoutAnything() async throws {
        try await LiveGateway.with(MemoryLog(partitions: 1)) { live in
            let writer = try await live.connect()
            for start in stride(from: 0, to: 3_000, by: 1_000) {
                let events = (start..<start + 1_000).map { insert(other, $0, $0 == 2_999 ? "task" : "note") }
                writer.send(.publish(.init(stream: StreamName("todo")!, events: events)))
            }
            var acked = 0
            while acked < 3_000 { acked += try await writer.nextAck().acks.count }
            let found = try await answer(live, "?models=task&wait=1000")
            #expect(found.seqs == [2_999] && found.member("from") == "0")
            let reader = try live.reader(path + "?models=task", ["accept": "text/event-stream"])
            let messages = try await reader.messages("the event") { !$0.isEmpty }
            #expect(messages[0].seqs == [2_999] && messages[0].member("from") == "0")
        }
    }
}
