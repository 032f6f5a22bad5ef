import ReelCore
import ReelLog
import ReelNet
import Testing

@testable import ReelGateway

/// Tests the socket from a client's view, on a log in memory.
@Suite(.timeLimit(.minutes(15))) struct SocketTests {
    let todo = StreamName("todo")!
    let site = Site(high: 1, low: 1)

    @Test("the gateway acks published events and delivers them to all subscribers in order") func deliversInOrder()
        async throws
    {
        try await LiveGateway.with { live in
            let (writer, reader) = (try await live.connect(), try await live.connect())
            reader.send(.subscribe(.init(stream: todo, position: .after(-1))), ref: "7")
            let subscribed = try await reader.nextSubscribed()
            #expect(subscribed.after == -1 && subscribed.head == -1)
            writer.send(
                .publish(.init(stream: todo, events: (0..<3).map { Sent.insert(site, $0, "a\($0)") })),
                ref: "\"p\""
            )
            let ack = try await writer.nextAck()
            #expect(ack.acks.map(\.op) == [0, 1, 2])
            #expect(ack.acks.map(\.seq) == [0, 1, 2])
            let events = try await reader.events(
                of: todo,
                partition: subscribed.partition,
                after: -1,
                through: 2
            )
            #expect(events.map(\.seq) == [0, 1, 2])
        }
    }

    @Test("ref comes back as it was sent") func refComesBackAs() async throws {
        try await LiveGateway.with { live in
            let socket = try await live.connect()
            socket.send(.unsubscribe(todo), ref: #""a\u0041""#)
            let frame = try await socket.next { if case .unsubscribed = $0.body { true } else { false } }
            #expect(frame.ref == Array(#""a\u0041""#.utf8))
        }
    }
}
