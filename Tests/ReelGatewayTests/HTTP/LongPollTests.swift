import EventLogConformance
import Foundation
import ReelCore
import ReelLog
import ReelNet
import ReelNode
import TestSupport
import Testing

@testable import ReelGateway

/// Tests `GET …/events` as a long poll and as server-sent events.
@Suite(.timeLimit(.minutes(15))) struct LongPollTests {
    private let todo = StreamName("todo")!
    private let site = Site(high: 1, low: 1)
    private let path = "/v1/streams/todo/events"

    // MARK: Long poll

    @Test("a long poll is answered by the next event of its stream") func aLongPollIs() async throws {
        try await LiveGateway.with(MemoryLog(partitions: 1)) { live in
            try await live.publish("todo", Sent.insert(site, 0, "a"))
            let poll = try live.reader(path + "?after=0&wait=1000")
            try await live.streamWaiters(are: 1)
            try await live.publish("other", Sent.insert(site, 0, "b"))
            #expect(poll.head == nil, "another stream's event is none of its")
            try await live.publish("todo", Sent.insert(site, 1, "c"))
            try await eventually("an answer") { poll.hasEnded }
            let answer = MessageReader.Message(data: poll.text)
            #expect(answer.seqs == [2])
            #expect(answer.member("from") == "1" && answer.member("to") == "2")
            try await live.streamWaiters(are: 0)
        }
    }

    @Test("a long poll that meets nothing proves the head") func aLongPollThat() async throws {
        try await LiveGateway.with(MemoryLog(partitions: 1), { $0.pollS = GatewaySettings().pollS }) { live in
            try await live.publish("other", Sent.insert(site, 0, "a"))
            let answer = MessageReader.Message(data: try await live.text(path + "?wait=1"))
            #expect(answer.seqs.isEmpty && answer.member("from") == "0" && answer.member("to") == "0")
            #expect(try await live.get(path + "?wait=31").status == 400)
            #expect(try await live.get(path + "?wait=-1").status == 400)
        }
    }

    @Test("a long poll returns existing events immediately") func pollReturnsExistingEvents() async throws {
        try await LiveGateway.with { live in
            try await live.publish("todo", Sent.insert(site, 0, "a"))
            #expect(MessageReader.Message(data: try await live.text(path + "?wait=1000")).seqs == [0])
        }
    }

    @Test("a node that shuts down answers waiting clients") func shutdownAnswersWaiters() async throws {
        let live = try LiveGateway(MemoryLog())
        try await live.started()
        let poll = try live.reader(path + "?wait=1000")
        let events = try live.reader(path, ["accept": "text/event-stream"])
        try await live.streamWaiters(are: 2)
        live.gateway.end.begin()
        await live.gateway.waitUntilEnded()
        try await eventually("both have ended") { poll.hasEnded && events.hasEnded }
        #expect(poll.head?.status == 200 && poll.head?.headers["connection"] == "close")
        #expect(events.messages.allSatisfy { $0.event == nil }, "nothing was wrong")
        await live.end()
    }

    // MARK: Server-sent events

    @Test("messages bring what is there and what comes without a gap") func messagesBringWhatIs() async throws {
        try await LiveGateway.with(MemoryLog(partitions: 1)) { live in
            for op in 0..<3 { try await live.publish("todo", Sent.insert(site, Int64(op), "\(op)")) }
            let reader = try live.reader(path + "?limit=2", ["accept": "text/event-stream"])
            _ = try await reader.messages("three events") { $0.flatMap(\.seqs).count == 3 }
            #expect(reader.head?.headers["content-type"] == "text/event-stream")
            try await live.publish("other", Sent.insert(site, 0, "x"))
            try await live.publish("todo", Sent.insert(site, 3, "d"))
            let messages = try await reader.messages("the next") { $0.flatMap(\.seqs).count == 4 }
            #expect(messages.flatMap(\.seqs) == [0, 1, 2, 4])
            #expect(messages.first?.seqs == [0, 1], "at most limit events each")
            #expect(messages.allSatisfy { $0.member("from") ?? "" <= $0.member("to") ?? "" }, "none says nothing new")
            var proven = -1
            for message in messages {
                #expect(message.member("from") == "\(proven + 1)", "each goes on where the one before ended")
                proven = Int(message.member("to") ?? "") ?? -2
                #expect(message.id == "\(live.log.epoch):\(proven)")
            }
            #expect(proven == 4)
        }
    }

    @Test("an event stream continues after the last event ID") func continuesAfterLastID() async throws {
        try await LiveGateway.with(MemoryLog(partitions: 1)) { live in
            for op in 0..<3 { try await live.publish("todo", Sent.insert(site, Int64(op), "\(op)")) }
            let id = "\(live.log.epoch):1"
            let reader = try live.reader(path + "?after=-1", ["accept": "text/event-stream", "last-event-id": id])
            let messages = try await reader.messages("the rest") { !$0.isEmpty }
            #expect(messages[0].seqs == [2] && messages[0].member("from") == "2")
            for (id, status) in [("0000000000000007:1", 409), ("1", 400), ("\(live.log.epoch):", 400), ("x:1", 400)] {
                let headers: HTTPHeaders = ["accept": "text/event-stream", "last-event-id": id]
                #expect(try await live.ask("GET", path, headers: headers).status == status, "\(id)")
            }
        }
    }

    @Test("a quiet stream is proven while others go on") func aQuietStreamIs() async throws {
        try await LiveGateway.with(MemoryLog(partitions: 1)) { live in
            let reader = try live.reader(path, ["accept": "text/event-stream"])
            _ = try await reader.messages("the first") { !$0.isEmpty }
            try await live.publish("other", Sent.insert(site, 0, "x"))
            let messages = try await reader.messages("a proof") { $0.last?.member("to") == "0" }
            #expect(messages.flatMap(\.seqs).isEmpty)
            #expect(messages.first?.id == "\(live.log.epoch):-1", "even an empty partition has an id to come back with")
        }
    }

    @Test("a slow client of an event stream costs no memory and misses no event") func slowStreamMissesNothing()
        async throws
    {
        let paceBytes = 64 << 10
        try await LiveGateway.with(MemoryLog(partitions: 1)) { settings in
            settings.paceBytes = paceBytes
            settings.ringBytes = 1 << 20
            settings.frameBytes = 64 << 10
        } _: { live in
            let reader = try live.reader(path, ["accept": "text/event-stream"])
            _ = try await reader.messages("the first") { !$0.isEmpty }
            reader.pause()
            let text = String(repeating: "x", count: 100_000)
            // The kernels of both ends buffer an unknown number of bytes, so the test publishes
            // until the gateway keeps 4 MiB.
            var (count, pushed) = (0, 0)
            while count * text.utf8.count - pushed < 4 << 20 {
                for _ in 0..<10 {
                    try await live.publish("todo", Sent.insert(site, Int64(count), "\(count)", text))
                    count += 1
                }
                pushed = try #require(try await live.metric("reel_gateway_pushed_bytes_total"))
                try #require(count < 1_000, "found \(pushed) bytes written to one who reads nothing")
            }
            reader.resume()
            try await eventually("all bytes") { reader.byteCount > count * text.utf8.count }
            let messages = try await reader.messages("all of them") { $0.flatMap(\.seqs).count == count }
            #expect(messages.flatMap(\.seqs) == Array(0..<count))
        }
    }

    @Test("the gateway forgets a client that disconnects") func forgetsDisconnectedClient() async throws {
        try await LiveGateway.with { live in
            let reader = try live.reader(path, ["accept": "text/event-stream"])
            try await live.streamWaiters(are: 1)
            reader.cancel()
            try await eventually("it is gone") {
                // The gateway may notice the closed connection only at its next write.
                try await live.publish("todo", Sent.insert(Site(high: 2, low: .random(in: 0...9_999_999)), 0, "a"))
                return try await live.metric("reel_gateway_http_subscribers") == 0
            }
        }
    }

    @Test("a log that is another one ends it with the reason") func aLogThatIsAnother() async throws {
        try await LiveGateway.with(MemoryLog(partitions: 1)) { live in
            let reader = try live.reader(path, ["accept": "text/event-stream"])
            let poll = try live.reader(path + "?wait=1000")
            try await live.streamWaiters(are: 2)
            live.gateway.context.health.diverged(ReelError(.diverged, "found another record"))
            try await eventually("both have ended") { reader.hasEnded && poll.hasEnded }
            #expect(reader.messages.last?.event == "problem")
            #expect(reader.messages.last?.member("code") == "diverged")
            #expect(poll.head?.status == 409)
        }
    }
}

extension LiveGateway {
    /// Publishes one event and waits for its ack.
    func publish(_ stream: String, _ event: [UInt8]) async throws {
        let body = #"{"events":["# + String(decoding: event, as: UTF8.self) + "]}"
        let answer = try await ask("POST", "/v1/streams/\(stream)/events?outcome=0", body: body)
        #expect(answer.status == 200, "\(String(decoding: answer.body, as: UTF8.self))")
    }

    func text(_ target: String) async throws -> String {
        let answer = try await get(target)
        #expect(answer.status == 200)
        return String(decoding: answer.body, as: UTF8.self)
    }

    func streamWaiters(are count: Int) async throws {
        try await eventually("\(count) waiters") { try await metric("reel_gateway_http_subscribers") == count }
    }

    /// Sends a request and returns a reader of the answer.
    func reader(_ target: String, _ headers: HTTPHeaders = HTTPHeaders()) throws -> MessageReader {
        var request = HTTPClientRequest("GET", host: gateway.address.host, port: gateway.address.port, target: target)
        request.headers = headers
        request.timeout = Self.patience
        return try MessageReader(http, request)
    }
}
