import CFanOutFloor
import ReelCore
import ReelLab

/// Measures the events per second that the load client reads on one loop with 5,000 sockets. The floor is a bare epoll
/// reader in C that counts events. Both read from a server that only sends, on the other core.
enum LoadClientBenchmark {
    private static let sockets = 5_000
    private static let seconds = 2.0

    @Sendable static func run() async throws -> [Measured] {
        raiseDescriptorLimit()
        let port = floor_feed(16)
        guard port > 0 else { throw BenchmarkError("the server that feeds the readers does not start") }
        var (own, floor): ([Double], [Double]) = ([], [])
        for _ in 0..<3 {
            own.append(try await rate(port))
            var result = floor_result()
            guard floor_read(port, Int32(sockets), seconds, &result) == 0 else {
                throw BenchmarkError("the bare reader found an invalid answer of the server")
            }
            floor.append(Double(result.deliveries) / result.seconds)
        }
        let work = "`reel load` reads events of 200 B on 5,000 sockets, 16 events a frame, one loop"
        let (value, unit) = (median(own), "deliveries/s")
        return [
            Measured(work: work, value: value, unit: unit, goal: .atLeast(1_000_000)),
            Measured(
                work: work,
                value: value,
                unit: unit,
                peer: ("bare C epoll reader", median(floor)),
                goal: .atLeast(0.5)
            ),
        ]
    }

    private static func rate(_ port: Int32) async throws -> Double {
        guard let stream = StreamName("load") else { return 0 }
        var plan = LoadPlan(urls: ["http://127.0.0.1:\(port)"], streams: [stream])
        (plan.publishers, plan.readers, plan.settleSeconds) = (0, sockets, 0)
        let load = try LoadRun(plan)
        async let report = load.run()
        var before = try await load.statistics()
        while before.seconds.last?.connected ?? 0 < sockets {
            try await Task.sleep(for: .milliseconds(50))
            before = try await load.statistics()
        }
        let clock = ContinuousClock()
        let start = clock.now
        before = try await load.statistics()
        try await Task.sleep(for: .seconds(seconds))
        let delivered = try await load.statistics().delivered - before.delivered
        let taken = clock.now - start
        load.stop()
        _ = try await report
        return Double(delivered) / (Double(taken.components.seconds) + Double(taken.components.attoseconds) / 1e18)
    }
}
