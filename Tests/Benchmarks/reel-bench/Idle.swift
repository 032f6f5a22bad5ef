import CFanOutFloor
import Glibc
import ReelNet

/// Measures the memory of an idle WebSocket in this process, and the processor time of 5,000 of them.
enum IdleBenchmark {
    private static let sockets = 5000
    private static let seconds: UInt32 = 3

    @Sendable static func run() throws -> [Measured] {
        raiseDescriptorLimit()
        let loop = try EventLoop()
        let port = try loop.sync {
            let server = HTTPServer(on: loop, handler: FanOutServer())
            return try server.listen(on: SocketAddress("127.0.0.1", port: 0)).port
        }
        // Memory that is allocated once for all sockets does not count.
        var descriptors = try open(100, port)
        let before = try Usage.residentBytes(of: getpid())
        descriptors += try open(sockets, port)
        let after = try Usage.residentBytes(of: getpid())
        let start = try Usage.cpuSeconds(of: getpid())
        sleep(seconds)
        let share = (try Usage.cpuSeconds(of: getpid()) - start) / Double(seconds) * 100
        for descriptor in descriptors { close(descriptor) }
        loop.stop()
        loop.join()
        return [
            Measured(
                work: "memory of one of \(sockets) idle WebSockets",
                value: Double((after - before) / sockets),
                unit: "B",
                peer: nil,
                goal: .atMost(1500)
            ),
            Measured(
                work: "CPU of \(sockets) idle WebSockets",
                value: share,
                unit: "% of a core",
                peer: nil,
                goal: .atMost(0.2)
            ),
        ]
    }

    private static func open(_ count: Int, _ port: UInt16) throws -> [Int32] {
        try (0..<count).map { _ in
            let descriptor = floor_open(Int32(port), "/pub")
            guard descriptor >= 0 else { throw BenchmarkError("opening a socket: errno \(errno)") }
            return descriptor
        }
    }
}
