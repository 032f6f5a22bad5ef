import ReelCore
import ReelLog
import ReelNet
import TestSupport
import Testing

@testable import ReelGateway

/// Tests partial sync: a subscription with models gets the events of these models and of its own site, and the proof
/// that there are no other such events.
@Suite(.timeLimit(.minutes(15))) struct FilterTests {
    private let todo = StreamName("todo")!
    private let own = Site(high: 1, low: 1)
    private let other = Site(high: 2, low: 2)

    private func insert(_ site: Site, _ op: Int, _ model: String) -> [UInt8] {
        EventText.sent("insert", site, op, #""model":"\#(model)","id":"\#(site)-\#(op)","fields":{"n":1}"#).bytes
    }

    /// One event of each kind. A view of the model `ta"sk` and of the own site contains the seqs 0, 2, 3, 5 and 6.
    private var history: [[UInt8]] {
        let part = #"{"type":"insert","model":"note","id":"p","fields":{}}"#
        return [
            insert(other, 0, #"ta\"sk"#), insert(other, 1, "note"),
            EventText.sent("batch", other, 2, #""events":[\#(part),{"type":"insert","model":"ta\u0022sk","id":"q"}]"#)
                .bytes,
            insert(own, 0, "note"), EventText.sent("noop", other, 3).bytes, EventText.sent("noop", own, 1).bytes,
            EventText.sent("delete", other, 4, #""model":"ta\"sk","id":"q""#).bytes,
            EventText.sent("delete", other, 5, #""model":"note","id":"p""#).bytes,
        ]
    }

    private let wanted: [Seq] = [0, 2, 3, 5, 6]

    private func subscribe(_ live: LiveGateway, _ models: [String], _ site: Site?) async throws -> TestSocket {
        let socket = try await live.connect()
        socket.send(.subscribe(.init(stream: todo, position: .after(-1), models: models, site: site)))
        _ = try await socket.nextSubscribed()
        return socket
    }

    private func read(_ socket: TestSocket, through seq: Seq) async throws -> [Seq] {
        try await socket.events(of: todo, partition: 0, after: -1, through: seq).map(\.seq)
    }

    /// The existing events come from the ring; if the ring is too small, they come from the log.
    @Test("the gateway filters existing events", arguments: [32 << 20, 1])
    func filtersExistingEvents(ringBytes: Int) async throws {
        try await LiveGateway.with(MemoryLog(partitions: 1)) {
            $0.ringBytes = ringBytes
        } _: { live in
            for event in history { try await live.publish("todo", event) }
            #expect(try await read(subscribe(live, [#"ta"sk"#], own), through: 7) == wanted)
            #expect(try await read(subscribe(live, [#"ta"sk"#], nil), through: 7) == [0, 2, 6])
            #expect(try await read(subscribe(live, ["note", #"ta"sk"#], nil), through: 7) == [0, 1, 2, 3, 6, 7])
            #expect(try await read(subscribe(live, [], own), through: 7) == [3, 5])
            #expect(try await read(subscribe(live, ["nothing"], nil), through: 7) == [])
        }
    }

    @Test("the gateway filters new events and proves all their seqs") func filtersNewEvents() async throws {
        try await LiveGateway.with(MemoryLog(partitions: 1)) { live in
            let partial = try await subscribe(live, [#"ta"sk"#], own)
            let twin = try await subscribe(live, [#"ta"sk"#], Site(high: 3, low: 3))
            let whole = try await live.connect()
            whole.send(.subscribe(.init(stream: todo, position: .after(-1))))
            for event in history { try await live.publish("todo", event) }
            #expect(try await read(partial, through: 7) == wanted)
            #expect(try await read(twin, through: 7) == [0, 2, 6])
            #expect(try await read(whole, through: 7) == Array(0...7))
        }
    }

    @Test("a filtered subscription continues from its proven position") func filteredViewContinues() async throws {
        try await LiveGateway.with(MemoryLog(partitions: 1)) { live in
            for event in history { try await live.publish("todo", event) }
            // Seq 3 belongs to the view and seq 4 does not, so both positions have the same events after them.
            for after: Seq in [3, 4] {
                let socket = try await live.connect()
                let epoch = live.log.epoch
                socket.send(
                    .subscribe(
                        .init(stream: todo, position: .after(after), epoch: epoch, models: [#"ta"sk"#], site: own)
                    )
                )
                _ = try await socket.nextSubscribed()
                let events = try await socket.events(of: todo, partition: 0, after: after, through: 7)
                #expect(events.map(\.seq) == [5, 6])
            }
        }
    }

    @Test("a refusal for lack of room for a filter is no error of the client, however often it comes")
    func refusedFilters() async throws {
        try await LiveGateway.with {
            $0.filterBytes = 8
            $0.errors = 3
        } _: { live in
            let socket = try await live.connect()
            for number in 0..<6 {
                let stream = try #require(StreamName("s\(number)"))
                socket.send(.subscribe(.init(stream: stream, position: .now, models: ["a long model"])))
                #expect(try await socket.nextError().error.code == .limit)
            }
            socket.send(.subscribe(.init(stream: todo, position: .now)))
            #expect(try await socket.nextSubscribed().head == -1)
        }
    }

    @Test("another subscription takes the place of the filter too") func anotherSubscriptionTakesThe() async throws {
        try await LiveGateway.with(MemoryLog(partitions: 1)) { live in
            let socket = try await subscribe(live, ["nothing"], nil)
            socket.send(.subscribe(.init(stream: todo, position: .after(-1))))
            _ = try await socket.nextSubscribed()
            try await live.publish("todo", insert(other, 0, "note"))
            #expect(try await read(socket, through: 0) == [0])
        }
    }

    /// The loop examines more events than it may in one turn.
    @Test("a long way without anything wanted is proven") func aLongWayWithout() async throws {
        try await LiveGateway.with(MemoryLog(partitions: 1)) { live in
            let writer = try await live.connect()
            let count = 3_000
            for start in stride(from: 0, to: count, by: 1_000) {
                let events = (start..<start + 1_000).map { insert(other, $0, $0 == count - 1 ? "task" : "note") }
                writer.send(.publish(.init(stream: todo, events: events)))
            }
            try await live.log(holds: Seq(count - 1), in: 0)
            #expect(try await read(subscribe(live, ["task"], nil), through: Seq(count - 1)) == [Seq(count - 1)])
        }
    }

    @Test("too many models are refused") func tooManyModelsAre() async throws {
        try await LiveGateway.with { live in
            let socket = try await live.connect()
            let models = (0...EventFilter.modelsMax).map { "m\($0)" }
            socket.send(.subscribe(.init(stream: todo, position: .after(-1), models: models)))
            #expect(try await socket.nextError().error.code == .limit)
        }
    }
}
