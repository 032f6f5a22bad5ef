import Foundation
import ReelCore
import ReelLog
import ReelNet
import ReelNode
import TestSupport
import Testing

@testable import ReelGateway

/// Tests how many events and bytes one client may publish to a stream.
@Suite struct PublishLimitsTests {
    private let site = Site(high: 1, low: 1)
    private let other = Site(high: 2, low: 2)
    private let payer = Payer.subject("ann")
    private let stranger = Payer.address(7)

    @Test("a client publishes up to its rate and receives the time until the next publish") func limitsPublishRate() {
        var rate = RateLimit<Payer>(10)
        for _ in 0..<10 { #expect(rate.take(1, of: payer, nowMs: 5_000) == nil) }
        #expect(rate.take(1, of: payer, nowMs: 5_000) == 100)
        #expect(rate.take(1, of: stranger, nowMs: 5_000) == nil, "others are not concerned")
        #expect(rate.take(1, of: payer, nowMs: 5_100) == nil)
        #expect(rate.take(1, of: payer, nowMs: 5_100) == 100)
    }

    @Test("an idle client can publish more than one second's events in one call") func allowsBurstAfterIdle() {
        var rate = RateLimit<Payer>(10)
        #expect(rate.take(50, of: payer, nowMs: 0) == nil)
        #expect(rate.take(1, of: payer, nowMs: 0) == 4_100)
        #expect(rate.take(50, of: payer, nowMs: 4_000) == 1_000)
        rate.tick(nowMs: 4_900)
        #expect(rate.take(1, of: payer, nowMs: 4_100) == nil)
        rate.tick(nowMs: 6_000)
        #expect(rate.take(50, of: payer, nowMs: 6_000) == nil)
    }

    @Test("bytes and new sites are charged too") func bytesAndNewSites() {
        var settings = GatewaySettings()
        settings.publishBytesPerSecond = PayerLimit(1_000)
        settings.newSitesPerHour = PayerLimit(2)
        var limits = PublishLimits(settings)
        let key = PublishLimits.Key(payer: payer, stream: StreamName("todo")!)
        func publish(_ low: UInt64, op: Op = 0, bytes: Int = 1, nowMs: Int64 = 0) -> LimitMeters.Limit? {
            let offer = PublishLedger.Offer(
                site: Site(high: 1, low: low),
                op: op,
                value: Array(repeating: 0, count: bytes)
            )
            return limits.take(PublishLimits.Charge([offer]), of: key, nowMs: nowMs)?.limit
        }
        #expect(publish(1) == nil && publish(2) == nil)
        #expect(publish(3) == .newSites)
        #expect(publish(3, op: 1) == nil, "no site begins with it")
        #expect(publish(3, nowMs: 1_800_000) == nil, "half an hour later")
        #expect(publish(3, op: 2, bytes: 5_000, nowMs: 2_000_000) == nil, "one who was quiet")
        #expect(publish(3, op: 3, nowMs: 2_000_000) == .publishBytes)
        #expect(publish(3, op: 3, nowMs: 2_006_000) == nil)
    }

    @Test("a payer has four times a stream's limit in all streams together")
    func allStreams() {
        var settings = GatewaySettings()
        settings.publishesPerSecond = PayerLimit(10)
        settings.newSitesPerHour = PayerLimit(1)
        var limits = PublishLimits(settings)
        func publish(_ stream: String, op: Op, _ payer: Payer) -> PublishLimits.Refusal? {
            let offers = (0..<10).map { PublishLedger.Offer(site: site, op: op + Op($0), value: [0]) }
            let key = PublishLimits.Key(payer: payer, stream: StreamName(stream)!)
            return limits.take(PublishLimits.Charge(offers), of: key, nowMs: 0)
        }
        for number in 0..<4 { #expect(publish("s\(number)", op: 0, payer) == nil) }
        let refusal = publish("s4", op: 1, payer)
        #expect(refusal?.limit == .publishesOfPayer)
        #expect(refusal?.error.code == .rateLimited && refusal?.error.retryMs == 250)
        #expect(publish("s0", op: 1, payer)?.limit == .publishes, "the stream's own limit comes first")
        #expect(publish("s4", op: 0, stranger) == nil, "others are not concerned")

        settings.publishesPerSecond = .none
        limits = PublishLimits(settings)
        for number in 0..<4 { #expect(publish("s\(number)", op: 0, payer) == nil) }
        #expect(publish("s4", op: 0, payer)?.limit == .newSitesOfPayer)
        #expect(publish("s4", op: 1, payer) == nil, "no site begins with it")
    }

    @Test("a charge that one limit refuses is given back to all others")
    func refusedCharge() {
        var settings = GatewaySettings()
        settings.publishesPerSecond = PayerLimit(10)
        settings.publishBytesPerSecond = PayerLimit(100)
        var limits = PublishLimits(settings)
        func publish(_ stream: String, bytes: Int) -> LimitMeters.Limit? {
            let value = [UInt8](repeating: 0, count: bytes)
            let offers = (0..<10).map { PublishLedger.Offer(site: site, op: $0, value: value) }
            let key = PublishLimits.Key(payer: payer, stream: StreamName(stream)!)
            return limits.take(PublishLimits.Charge(offers), of: key, nowMs: 0)?.limit
        }
        #expect(publish("a", bytes: 40) == nil, "all bytes of a second in all streams")
        for _ in 0..<10 { #expect(publish("b", bytes: 1) == .publishBytesOfPayer) }
        #expect(publish("b", bytes: 0) == nil, "the refused events cost nothing")
    }

    @Test("the default limit applies only to subjects and other machines") func defaultLimitSparesLocal() {
        let limit = PayerLimit.standard(1)
        #expect(limit.holds(for: .subject("ann")) && limit.holds(for: .address(7)))
        for host in ["127.0.0.1", "127.1.2.3", "::1"] {
            let address = try? SocketAddress(host, port: 1)
            #expect(!limit.holds(for: .address(address?.origin ?? 7)), "\(host)")
            #expect(PayerLimit(1).holds(for: .address(address?.origin ?? 7)))
        }
        #expect(!PayerLimit.none.holds(for: .subject("ann")))
    }

    @Test("subscriptions and filters of one client are limited") func subscriptionsAndFiltersOf() async throws {
        try await LiveGateway.with(MemoryLog(partitions: 1)) {
            $0.payerSubscriptions = PayerLimit(3)
            $0.filterBytes = 100
        } _: { live in
            let (a, b) = (try await live.connect(), try await live.connect())
            func subscribe(_ socket: TestSocket, _ name: String, models: [String]? = nil) {
                socket.send(.subscribe(.init(stream: StreamName(name)!, position: .now, models: models)))
            }
            for name in ["s1", "s2"] {
                subscribe(a, name)
                _ = try await a.nextSubscribed()
            }
            subscribe(b, "s1")
            _ = try await b.nextSubscribed()
            subscribe(b, "s2")
            #expect(try await b.nextError().error.code == .limit)
            subscribe(a, "s1", models: [String(repeating: "m", count: 101)])
            #expect(try await a.nextError().error.code == .limit)
            // Bytes of a filter are freed when a new filter replaces it, and when its subscription ends.
            for models in [String(repeating: "m", count: 90), String(repeating: "n", count: 91), "x"] {
                subscribe(a, "s1", models: [models])
                _ = try await a.nextSubscribed()
            }
            subscribe(a, "s2", models: [String(repeating: "m", count: 99)])
            _ = try await a.nextSubscribed()
            a.send(.unsubscribe(StreamName("s2")!))
            try await eventually("the place is free") { try await live.metric("reel_gateway_subscriptions") == 2 }
            subscribe(b, "s2")
            _ = try await b.nextSubscribed()
            #expect(try await live.metric(#"reel_limited_total{limit="subscriptions"}"#) == 1)
            #expect(try await live.metric(#"reel_limited_total{limit="filters"}"#) == 1)
        }
    }

    @Test("a connection waits for a few positions only") func aConnectionWaitsFor() async throws {
        let log = try MemoryLog(partitions: 1)
        try await LiveGateway.with(log) {
            $0.waits = 4
        } _: { live in
            let socket = try await live.connect()
            for number in 0..<5 {
                socket.send(
                    .subscribe(.init(stream: StreamName("s\(number)")!, position: .after(1_000), epoch: log.epoch))
                )
            }
            #expect(try await socket.nextError().error.code == .overloaded)
            #expect(try await live.metric(#"reel_limited_total{limit="waits"}"#) == 1)
        }
    }

    @Test("the rate limit returns the quota of events that were not taken") func returnsUnusedQuota() {
        var rate = RateLimit<Payer>(10)
        #expect(rate.take(10, of: payer, nowMs: 0) == nil)
        #expect(rate.take(1, of: payer, nowMs: 0) != nil)
        rate.giveBack(10, of: payer)
        #expect(rate.take(10, of: payer, nowMs: 0) == nil)
    }

    /// The test publishes 100 events at once with a limit of one a second. No delay of the machine is that long.
    @Test("a client that publishes too much receives the time to wait") func receivesWaitTime() async throws {
        try await LiveGateway.with(MemoryLog(partitions: 1)) {
            $0.publishesPerSecond = PayerLimit(1)
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
            #expect(elsewhere.status == 429, "and these are the events of 25 seconds in all streams")
            let refused = try await live.ask("POST", "/v1/streams/todo/events?outcome=0", body: body)
            #expect(refused.status == 429, "another site of the same address pays from the same purse")
            #expect(refused.headers["retry-after"].flatMap { Int($0) } ?? 0 > 1)
            #expect(try await live.metric(#"reel_limited_total{limit="publishes"}"#) == 101)
            #expect(try await live.metric(#"reel_limited_total{limit="publishes_all_streams"}"#) == 100)
        }
    }

    @Test("a client that publishes with another client's site uses none of that client's rate")
    func strangersSite() async throws {
        let keys = try KeyFile()
        try await LiveGateway.with(MemoryLog(partitions: 1)) {
            $0.publishesPerSecond = PayerLimit(1)
            $0.node.tokens = keys.gate
        } _: { live in
            let (eve, ann) = (try keys.token("eve", publish: "*"), try keys.token("ann", publish: "*"))
            #expect(try await publish(live, eve, "low", op: 0) == 200)
            #expect(try await publish(live, eve, "low", op: 50) == 429)
            #expect(try await publish(live, ann, "todo", op: 0) == 200, "the site is hers")
        }
    }

    /// Publishes fifty events of the site and returns the status.
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
