import EventLogConformance
import ReelCore
import ReelLog
import ReelNet
import ReelNode
import Testing

@testable import ReelGateway

/// Many who come back to a gateway that has started anew, and kept nothing of what they missed.
@Suite(.timeLimit(.minutes(15))) struct CatchUpTests {
    private let site = Site(high: 1, low: 1)

    /// A log of one partition, of which a gateway that starts keeps the last record only. Each stream has an event here
    /// and there, most are of another one.
    private func log(_ count: Int, sparse streams: [StreamName], every distance: Int) async throws -> MemoryLog {
        let log = try MemoryLog(partitions: 1)
        let busy = StreamName("busy")!
        var witness: Witness?
        let records = (0..<count).map { index in
            let isSparse = index % distance == distance / 2
            let stream = isSparse ? streams[index / distance % streams.count] : busy
            let value = Batches.value(site, Op(index), "x", base: Seq(index) - 1)
            defer { witness = Witness(seq: Seq(index), hash: FNV1a.record(stream, value)) }
            return LogAppend(key: stream.key, value: value, witness: witness)
        }
        let _: Void = try await withCheckedThrowingContinuation { continuation in
            log.append(records, to: 0) { continuation.resume(with: $0.map { _ in () }) }
        }
        return log
    }

    /// What these streams bring, all of which the socket subscribes to, until all is proven.
    private func read(_ streams: [StreamName], on socket: TestSocket, to head: Seq) async throws -> [StreamName: [Seq]]
    {
        var proven: [StreamName: Seq] = [:]
        var seqs: [StreamName: [Seq]] = [:]
        while proven.count < streams.count || proven.values.contains(where: { $0 < head }) {
            let frame = try await socket.next { _ in true }
            switch frame.body {
            case .subscribed(let subscribed): proven[subscribed.stream] = subscribed.after
            case .events(let part):
                #expect(part.from == (proven[part.stream] ?? -2) + 1)
                proven[part.stream] = part.to
                seqs[part.stream, default: []] += part.events.map(\.seq)
            case .upto(_, let seq): for stream in proven.keys { proven[stream] = max(proven[stream] ?? -1, seq) }
            default: Issue.record("found \(frame)")
            }
        }
        return seqs
    }

    @Test func manyWhoComeBackHaveTheLogReadOnce() async throws {
        let (count, distance) = (30_000, 25)
        let streams = (0..<100).map { StreamName("sparse\($0)")! }
        let log = HeldLog(try await log(count, sparse: streams, every: distance))
        try await LiveGateway.with(
            log,
            {
                $0.warmRecords = 1
                $0.node.loops = 2
            }
        ) { live in
            let before = log.rangesRead.count
            try await withThrowingTaskGroup(of: Void.self) { group in
                for client in 0..<10 {
                    group.addTask {
                        let socket = try await live.connect()
                        let own = Array(streams[client * 10..<client * 10 + 10])
                        for stream in own { socket.send(.subscribe(.init(stream: stream, position: .after(-1)))) }
                        let found = try await read(own, on: socket, to: Seq(count - 1))
                        for (index, stream) in zip(client * 10..<client * 10 + 10, own) {
                            let first = index * distance + distance / 2
                            let wanted = stride(from: first, to: count, by: distance * streams.count).map { Seq($0) }
                            #expect(found[stream] == wanted, "\(stream)")
                        }
                    }
                }
                try await group.waitForAll()
            }
            let ranges = log.rangesRead[before...]
            #expect(ranges.reduce(0) { $0 + $1.count } == count - 1, "each seq is read once")
            #expect(ranges.count <= 20, "in pages")
            #expect(try await live.metric(#"reel_gateway_pages_total{source="read"}"#) == ranges.count)
            #expect(try await live.metric("reel_gateway_pages_bytes") ?? 0 > count * 100)
        }
    }

    /// More than may be begun at once for one client.
    @Test func aClientThatWantsManyPlacesOfTheLogIsReadAFewAtATime() async throws {
        let places = 3 * GatewayLoop.logReadsMax
        let count = places * Int(LogPages.seqsMax)
        let log = HeldLog(try await log(count, sparse: [StreamName("sparse")!], every: 1_000))
        try await LiveGateway.with(log, { $0.warmRecords = 1 }) { live in
            let socket = try await live.connect()
            let before = log.reads
            log.hold()
            let streams = (0..<places).map { StreamName("s\($0)")! }
            for (index, stream) in streams.enumerated() {
                let after = Seq(index) * LogPages.seqsMax - 1
                let position = ClientFrame.Position.after(after)
                socket.send(.subscribe(.init(stream: stream, position: position, epoch: log.epoch)))
            }
            try await eventually("all have come") {
                try await live.metric("reel_gateway_subscriptions") == places
            }
            try await eventually("reads under way") { log.waiting == GatewayLoop.logReadsMax }
            #expect(log.reads - before == GatewayLoop.logReadsMax)
            log.release()
            _ = try await read(streams, on: socket, to: Seq(count - 1))
            #expect(log.rangesRead[before...].reduce(0) { $0 + $1.count } == count - 1, "each seq is read once")
        }
    }
}
