import CFanOutFloor
import Glibc
import ReelLab

/// Measures events at a fixed rate: their latency, and the processor time of a delivery, in comparison with NATS.
enum GatewayPaceBenchmark {
    /// Measures 100 and 1,000 events per second to 1,000 subscribers. The floor is a server that only sends each
    /// message at once.
    @Sendable static func fanOut() async throws -> [Measured] {
        try await GatewayStand.with { stand in
            try [(100, 0.5, 0.6), (1_000, 0.6, 0.7)].flatMap { perSecond, late, cost in
                try compare(
                    stand,
                    Pace(sockets: 1_000, streams: 1, subscriptions: 1, perSecond: perSecond),
                    "\(perSecond) events/s → 1000",
                    .atMost(late),
                    .atMost(cost),
                    floors: perSecond == 100 ? [.sending] : []
                )
            }
        }
    }

    /// Measures many streams, of which each client subscribes to some. The floors are servers that only send; one of
    /// them first writes each message to the disk.
    @Sendable static func streams() async throws -> [Measured] {
        try await GatewayStand.with { stand in
            try compare(
                stand,
                Pace(sockets: 1_000, streams: 10_000, subscriptions: 100, perSecond: 10_000),
                "10,000 streams, 10 subscribers each, 10,000 events/s in all",
                .atMost(1),
                .atMost(1),
                floors: [.sending, .keeping]
            )
        }
    }

    /// Measures the additional processor time of a second loop.
    @Sendable static func loops() async throws -> [Measured] {
        let pace = Pace(sockets: 1_000, streams: 1, subscriptions: 1, perSecond: 1_000)
        var (one, two): ([Double], [Double]) = ([], [])
        try await GatewayStand.with(["--loops", "1"]) { single in
            try await GatewayStand.with(["--loops", "2"]) { double in
                for isOne in turns(5) {
                    let stand = isOne ? single : double
                    let outcome = try pace.run(floor_reel, stand.port, pid: stand.node.process.pid)
                    if isOne { one.append(outcome.cpuMicros) } else { two.append(outcome.cpuMicros) }
                }
            }
        }
        return [
            Measured(
                work: "1,000 events/s → 1000 on two loops: CPU a delivery",
                value: median(two),
                unit: "µs",
                peer: ("one loop", median(one)),
                goal: .atMost(1.1)
            )
        ]
    }

    private static func compare(
        _ stand: GatewayStand,
        _ pace: Pace,
        _ work: String,
        _ late: Measured.Goal,
        _ cost: Measured.Goal,
        floors: [BareServer.Kind]
    ) throws -> [Measured] {
        try withFolder { folder in
            let bare = try floors.map { try BareServer($0, of: pace, log: "\(folder)/log") }
            var (reel, nats): ([Pace.Outcome], [Pace.Outcome]) = ([], [])
            var others = [[Pace.Outcome]](repeating: [], count: bare.count)
            for _ in 0..<5 {
                reel.append(try pace.run(floor_reel, stand.port, pid: stand.node.process.pid))
                nats.append(try pace.run(floor_nats, stand.nats.port, pid: stand.nats.process.pid))
                for (index, server) in bare.enumerated() {
                    others[index].append(try pace.run(floor_bare, server.port, pid: server.pid))
                }
            }
            return rows(work, reel, late, cost, nats)
                + zip(floors, others).flatMap { rows("\(work), \($0.rawValue)", $1, nil, nil, nats) }
        }
    }

    private static func rows(
        _ work: String,
        _ ours: [Pace.Outcome],
        _ late: Measured.Goal?,
        _ cost: Measured.Goal?,
        _ nats: [Pace.Outcome]
    ) -> [Measured] {
        [
            Measured(
                work: "\(work), \(ours[0].bytesEach) B a delivery, peer \(nats[0].bytesEach) B: p99",
                value: median(ours.map(\.p99Micros)),
                unit: "µs",
                peer: ("nats-server over WebSocket", median(nats.map(\.p99Micros))),
                goal: late
            ),
            Measured(
                work: "\(work): CPU a delivery",
                value: median(ours.map(\.cpuMicros)),
                unit: "µs",
                peer: ("nats-server over WebSocket", median(nats.map(\.cpuMicros))),
                goal: cost
            ),
        ]
    }
}

/// A bare server in C, which runs in a process of its own.
private final class BareServer {
    enum Kind: String {
        case sending = "bare C epoll"
        case keeping = "bare C epoll, first 4 KiB + fdatasync"
    }

    let port: Int32
    let pid: Int32

    init(_ kind: Kind, of pace: Pace, log: String) throws {
        var pid: Int32 = 0
        port = floor_serve_apart(pace.streams, pace.subscriptions, kind == .keeping ? log : nil, &pid)
        guard port > 0 else { throw BenchmarkError("the bare server does not start: errno \(errno)") }
        self.pid = pid
        Leftovers.started(pid)
    }

    deinit {
        kill(pid, SIGKILL)
        waitpid(pid, nil, 0)
        Leftovers.ended(pid)
    }
}

/// A load of messages at a fixed rate.
struct Pace {
    var sockets: Int32
    var streams: Int32
    /// The number of subscriptions of each socket.
    var subscriptions: Int32
    var perSecond: Int
    var seconds = 2.0

    struct Outcome {
        /// The latency, measured from the moment at which a message was due.
        var p50Micros: Double
        var p99Micros: Double
        /// The processor time of the server for each delivery.
        var cpuMicros: Double
        var bytesEach: Int
    }

    /// Measures the server whose process id is `pid`.
    func run(_ server: floor_server, _ port: Int32, pid: Int32) throws -> Outcome {
        /// The processor time that the server had used before the first message was due.
        final class Before {
            let pid: Int32
            var cpuSeconds: Double?
            init(_ pid: Int32) { self.pid = pid }
        }
        let before = Before(pid)
        var result = floor_result()
        let status = floor_pace(
            server,
            port,
            sockets,
            streams,
            subscriptions,
            Int32(perSecond),
            seconds,
            { context in
                guard let context else { return }
                let before = Unmanaged<Before>.fromOpaque(context).takeUnretainedValue()
                before.cpuSeconds = try? Usage.cpuSeconds(of: before.pid)
            },
            Unmanaged.passUnretained(before).toOpaque(),
            &result
        )
        guard status == 0, let start = before.cpuSeconds else {
            throw BenchmarkError("not all of \(perSecond) messages/s reached \(sockets) sockets: errno \(errno)")
        }
        let spent = try Usage.cpuSeconds(of: pid) - start
        return Outcome(
            p50Micros: result.p50_micros,
            p99Micros: result.p99_micros,
            cpuMicros: spent * 1e6 / Double(result.deliveries),
            bytesEach: Int(result.bytes / result.deliveries)
        )
    }
}
