import Foundation
import ReelCore
import ReelLog
import ReelNet
import Testing

@testable import ReelGateway

/// How much one site may publish.
@Suite struct PublishRateTests {
    private let site = Site(high: 1, low: 1)
    private let other = Site(high: 2, low: 2)

    @Test func aSitePublishesWhatItMayAndIsToldWhenItMayAgain() {
        var rate = PublishRate(perSecond: 10)
        for _ in 0..<10 { #expect(rate.take(1, of: site, nowMs: 5_000) == nil) }
        #expect(rate.take(1, of: site, nowMs: 5_000) == 100)
        #expect(rate.take(1, of: other, nowMs: 5_000) == nil, "others are not concerned")
        #expect(rate.take(1, of: site, nowMs: 5_100) == nil)
        #expect(rate.take(1, of: site, nowMs: 5_100) == 100)
    }

    @Test func moreThanASecondsWorthIsTakenFromOneWhoWasQuiet() {
        var rate = PublishRate(perSecond: 10)
        #expect(rate.take(50, of: site, nowMs: 0) == nil)
        #expect(rate.take(1, of: site, nowMs: 0) == 4_100)
        #expect(rate.take(50, of: site, nowMs: 4_000) == 1_000)
        rate.tick(nowMs: 4_900)
        #expect(rate.take(1, of: site, nowMs: 4_100) == nil)
        rate.tick(nowMs: 6_000)
        #expect(rate.take(50, of: site, nowMs: 6_000) == nil)
    }

    @Test func whatWasNotTakenIsGivenBack() {
        var rate = PublishRate(perSecond: 10)
        #expect(rate.take(10, of: site, nowMs: 0) == nil)
        #expect(rate.take(1, of: site, nowMs: 0) != nil)
        rate.giveBack(10, of: site)
        #expect(rate.take(10, of: site, nowMs: 0) == nil)
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
            #expect(try await live.ask("POST", "/v1/streams/todo/events", body: body).status == 200)
            let refused = try await live.ask("POST", "/v1/streams/todo/events", body: body)
            #expect(refused.status == 429)
            #expect(refused.headers["retry-after"].flatMap { Int($0) } ?? 0 > 1)
        }
    }
}
