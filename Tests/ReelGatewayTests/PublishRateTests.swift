import Foundation
import ReelCore
import ReelLog
import ReelNet
import ReelNode
import Testing

@testable import ReelGateway

/// How much one client may publish to a stream.
@Suite struct PublishRateTests {
    private let site = Site(high: 1, low: 1)
    private let other = Site(high: 2, low: 2)
    private let payer = PublishRate.Payer(client: .subject("ann"), stream: StreamName("todo")!)
    private let stranger = PublishRate.Payer(client: .address(7), stream: StreamName("todo")!)

    @Test func aClientPublishesWhatItMayAndIsToldWhenItMayAgain() {
        var rate = PublishRate(perSecond: 10)
        for _ in 0..<10 { #expect(rate.take(1, of: payer, nowMs: 5_000) == nil) }
        #expect(rate.take(1, of: payer, nowMs: 5_000) == 100)
        #expect(rate.take(1, of: stranger, nowMs: 5_000) == nil, "others are not concerned")
        #expect(rate.take(1, of: payer, nowMs: 5_100) == nil)
        #expect(rate.take(1, of: payer, nowMs: 5_100) == 100)
    }

    @Test func moreThanASecondsWorthIsTakenFromOneWhoWasQuiet() {
        var rate = PublishRate(perSecond: 10)
        #expect(rate.take(50, of: payer, nowMs: 0) == nil)
        #expect(rate.take(1, of: payer, nowMs: 0) == 4_100)
        #expect(rate.take(50, of: payer, nowMs: 4_000) == 1_000)
        rate.tick(nowMs: 4_900)
        #expect(rate.take(1, of: payer, nowMs: 4_100) == nil)
        rate.tick(nowMs: 6_000)
        #expect(rate.take(50, of: payer, nowMs: 6_000) == nil)
    }

    @Test func whatWasNotTakenIsGivenBack() {
        var rate = PublishRate(perSecond: 10)
        #expect(rate.take(10, of: payer, nowMs: 0) == nil)
        #expect(rate.take(1, of: payer, nowMs: 0) != nil)
        rate.giveBack(10, of: payer)
        #expect(rate.take(10, of: payer, nowMs: 0) == nil)
    }

    /// A hundred events at once, at one a second: nobody waits so long by accident.
    @Test func whoPublishesTooMuchIsToldTheTimeToWait() async throws {
        try await LiveGateway.with(MemoryLog(partitions: 1)) {
            $0.publishesPerSecond = 1
        } _: { live in
            let todo = StreamName("todo")!
            let socket = try await live.connect()
            let first = (0..<100).map { Sent.insert(site, Op($0), "\($0)") }
            socket.send(.publish(.init(stream: todo, events: first)))
            socket.send(.publish(.init(stream: todo, events: [Sent.insert(site, 100, "x")])))
            let nack = try await socket.nextNack()
            #expect(nack.error.code == .rateLimited)
            #expect((1...100_000).contains(try #require(nack.error.retryMs)))
            #expect(nack.op == 100)
            try await live.log(holds: 99, in: 0)

            let events = first.map { String(decoding: $0, as: UTF8.self) }.joined(separator: ",")
            let body = #"{"events":[\#(events)]}"#.replacingOccurrences(of: "\(site)", with: "\(other)")
            let elsewhere = try await live.ask("POST", "/v1/streams/other/events?outcome=0", body: body)
            #expect(elsewhere.status == 200, "another stream is not concerned")
            let refused = try await live.ask("POST", "/v1/streams/todo/events?outcome=0", body: body)
            #expect(refused.status == 429, "another site of the same address pays from the same purse")
            #expect(refused.headers["retry-after"].flatMap { Int($0) } ?? 0 > 1)
        }
    }

    @Test("who publishes with the site of another one uses up no rate of that one")
    func strangersSite() async throws {
        let keys = try KeyFile()
        try await LiveGateway.with(MemoryLog(partitions: 1)) {
            $0.publishesPerSecond = 1
            $0.node.tokens = keys.gate
        } _: { live in
            let (eve, ann) = (try keys.token("eve", publish: "*"), try keys.token("ann", publish: "*"))
            #expect(try await publish(live, eve, "low", op: 0) == 200)
            #expect(try await publish(live, eve, "low", op: 50) == 429)
            #expect(try await publish(live, ann, "todo", op: 0) == 200, "the site is hers")
            #expect(try await publish(live, eve, "todo", op: 0) != 429, "another stream")
        }
    }

    /// Publishes fifty events of the site; the status.
    private func publish(_ live: LiveGateway, _ token: String, _ stream: String, op: Op) async throws -> Int {
        let events = (0..<50).map { String(decoding: Sent.insert(site, op + Op($0), "x"), as: UTF8.self) }
        return try await live.ask(
            "POST",
            "/v1/streams/\(stream)/events?outcome=0",
            body: #"{"events":[\#(events.joined(separator: ","))]}"#,
            headers: ["authorization": "Bearer \(token)"]
        ).status
    }
}
