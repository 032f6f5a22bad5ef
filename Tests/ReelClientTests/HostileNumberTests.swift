import ReelBase
import ReelCore
import TestSupport
import Testing

@testable import ClientTestSupport
@testable import ReelClient

/// Numbers from a node that is faulty or hostile.
@Suite(.timeLimit(.minutes(5))) struct HostileNumberTests {
    private static let numbers: [Int64] = [
        -1, 0, 1, 41, 1_000, 1 << 31, 1 << 32, (1 << 53) - 2, (1 << 53) - 1, 1 << 53,
    ]

    /// Frames about the stream `s`, with `#` in the place of a number.
    private static let frames = [
        ##"{"t":"welcome","node":"a","epoch":"0000000000000001","number":0,"partitions":#,"limits":{"frame":#,"event":#,"##
            + ##""batch":#,"subscriptions":#,"fetch":#},"ping_s":#,"token_s":#}"##,
        ##"{"t":"subscribed","stream":"s","epoch":"0000000000000001","partition":#,"first":#,"head":#,"after":#}"##,
        ##"{"t":"events","stream":"s","from":#,"to":#,"events":[]}"##,
        ##"{"t":"events","stream":"s","from":#,"to":#,"events":[{"seq":#,"at":1,"type":"noop"}],"ref":"f"}"##,
        ##"{"t":"upto","partition":#,"seq":#}"##,
        ##"{"t":"lagged","stream":"s","seq":#,"head":#}"##,
        ##"{"t":"ack","stream":"s","epoch":"0000000000000001","acks":[{"site":"SITE","op":#,"seq":#}]}"##,
        ##"{"t":"nack","stream":"s","site":"SITE","op":#,"code":"gap","message":"","retry":#}"##,
        ##"{"t":"goaway","after_ms":#,"nodes":["a"]}"##,
        ##"{"t":"error","code":"node_behind","message":"","stream":"s","first":#,"head":#,"retry_ms":#,"ref":"s"}"##,
        ##"{"t":"error","code":"overloaded","message":"","stream":"s","head":#,"retry_ms":#,"index":#}"##,
    ]

    @Test("no number in a frame stops the process", arguments: 1...8)
    func frames(seed: UInt64) async throws {
        let network = try FakeNetwork()
        network.haste = 100
        let client = try network.client()
        let stream = try await client.open("s", from: seed.isMultiple(of: 2) ? .beginning : .snapshot)
        try await stream.publish(.insert("m", id: "0")).outcome()
        let site = await client.site
        var random = SeededGenerator(seed: seed)
        for _ in 0..<300 {
            var frame = ""
            for piece in Self.frames[Int(random.next() % UInt64(Self.frames.count))].split(separator: "#") {
                if !frame.isEmpty { frame += "\(Self.numbers[Int(random.next() % UInt64(Self.numbers.count))])" }
                frame += piece
            }
            let bytes = Array(frame.replacing("SITE", with: site).utf8)
            try await network.on { network in
                for connection in network.connections { connection.receive?(.text(bytes)) }
            }
            // A `welcome` may limit events to one byte, so the client may refuse the event as too large.
            if random.next().isMultiple(of: 10) { _ = try? await stream.publish(.update("m", id: "0", ["n": 1])) }
        }
        #expect(try stream.object("m", id: "0") != nil)
        await client.close()
    }

    @Test("no number in an HTTP answer stops the process", arguments: numbers, ["from", "to", "head", "partition"])
    func answers(number: Int64, member: String) async throws {
        let network = try FakeNetwork()
        network.subscriptionsMax = 0
        network.forged = (member, number)
        let client = try network.client()
        let stream = try await client.open("s", from: .beginning)
        let publication = try await stream.publish(.insert("m", id: "0"))
        try await eventually { (try? await network.on { $0.requests.count > 2 }) == true }
        try await network.on { $0.forged = nil }
        // A device believes a seq that a node has proven, but it checks the partition.
        if member == "partition" { guard case .applied = try await publication.outcome() else { throw Wrong() } }
        await client.close()
    }
}

extension SyncClient {
    fileprivate var site: String { opened.values[0].outbox.site.description }
}
