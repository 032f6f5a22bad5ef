import ReelCore
import ReelLog
import ReelNode
import Testing

@testable import ReelGateway

/// Tests that the rights of a token are checked when they are used.
@Suite struct RightsTests {
    private let site = Site(high: 1, low: 1)
    private let todo = StreamName("todo")!

    @Test("a fetch that waits is not answered once the token gives less") func aFetchThatWaits() throws {
        let keys = try KeyFile()
        let still = try StillGateway { $0.node.tokens = keys.gate }
        let (client, wire) = still.connect(access: Access(try keys.gate.grant(keys.token(publish: "*"), from: 0)))
        still.gateway.received(Batches.batch(from: 0, [.event(todo, site, 0, "x")]))
        let fetch = #"{"t":"fetch","stream":"todo","epoch":"\#(still.gateway.context.epoch)","ranges":[[0,0]],"ref":7}"#
        client.received(text: Array(fetch.utf8))
        #expect(wire.frames.count { if case .events = $0 { true } else { false } } == 1, "it may")

        // Two fetches wait until the client has read more.
        wire.fill(2 << 20)
        for _ in 0..<2 { client.received(text: Array(fetch.utf8)) }
        let less = try keys.token(read: "other", publish: "other")
        client.received(text: Array(#"{"t":"renew","token":"\#(less)"}"#.utf8))
        wire.frames = []
        wire.left = 0
        client.drained()
        let refused = wire.frames.compactMap { frame -> ServerFrame.Failure? in
            if case .error(let failure) = frame { failure } else { nil }
        }
        #expect(refused.map(\.error.code) == [.forbidden, .forbidden])
        #expect(refused.map(\.stream) == [todo, todo])
        #expect(wire.frames.count == 2, "and nothing else")
    }

    @Test("nothing is taken with a token that has just expired") func nothingIsTakenWith() throws {
        let still = try StillGateway()
        let all = try #require(StreamPattern("*"))
        let grant = TokenGrant(subject: "ann", expiresAt: 2, read: [all], publish: [all])
        let (client, wire) = still.connect(access: Access(grant))
        func publish(_ op: Op) {
            let event = String(decoding: Sent.insert(site, op, "a"), as: UTF8.self)
            client.received(text: Array(#"{"t":"publish","stream":"todo","events":[\#(event)]}"#.utf8))
        }
        publish(0)
        #expect(try still.log.bounds(0).last == 0, "it is in time")
        still.loop.pass(ms: 1_000)
        publish(1)
        #expect(try still.log.bounds(0).last == 0)
        #expect(wire.closeCode == 4401)
    }
}
