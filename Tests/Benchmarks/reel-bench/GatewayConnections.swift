import CFanOutFloor
import Glibc
import ReelLab

/// Measures clients that connect and stay connected.
enum GatewayConnectionsBenchmark {
    /// Measures how fast 5,000 clients that connect at the same time are subscribed.
    @Sendable static func connect() async throws -> [Measured] {
        try await GatewayStand.with { stand in
            var (reel, nats): ([Double], [Double]) = ([], [])
            for _ in 0..<5 {
                reel.append(try Herd(floor_reel, stand.port, count: 5_000).perSecond)
                // Closing the connections also uses the server's time, which must not affect the next measurement.
                try await Usage.rests(stand.node.process.pid)
                nats.append(try Herd(floor_nats, stand.nats.port, count: 5_000).perSecond)
                try await Usage.rests(stand.nats.process.pid)
            }
            return [
                Measured(
                    work: "5,000 clients connect and subscribe at once",
                    value: median(reel),
                    unit: "/s",
                    peer: ("nats-server over WebSocket", median(nats)),
                    goal: .atLeast(2)
                )
            ]
        }
    }

    /// Measures the memory of a subscribed client without events, with and without TLS.
    @Sendable static func idle() async throws -> [Measured] {
        let plain = try await GatewayStand.with { stand in
            try memory(of: stand, "subscribed connections", goal: 1_500) { count in
                try Herd(floor_reel, stand.port, count: count)
            }
        }
        let secure = try await withFolder { folder in
            let (certificate, key) = (folder + "/certificate.pem", folder + "/key.pem")
            try makeCertificate(certificate, key: key)
            return try await GatewayStand.with(["--tls-cert", certificate, "--tls-key", key]) { stand in
                try memory(of: stand, "subscribed connections with TLS", goal: 22_000) { count in
                    try Herd(securePort: stand.port, count: count)
                }
            }
        }
        return plain + secure
    }

    private static func memory(
        of stand: GatewayStand,
        _ what: String,
        goal: Double,
        connect: (Int) throws -> Herd
    ) throws -> [Measured] {
        let pid = stand.node.process.pid
        // Memory that is allocated once for all connections does not count.
        var herds = [try connect(100)]
        let before = try Usage.residentBytes(of: pid)
        var lines: [Measured] = []
        for (more, all) in [(5_000, 5_000), (10_000, 15_000)] {
            herds.append(try connect(more))
            lines.append(
                Measured(
                    work: "memory of one of \(all) \(what)",
                    value: Double(try Usage.residentBytes(of: pid) - before) / Double(all),
                    unit: "B",
                    goal: .atMost(goal)
                )
            )
        }
        return withExtendedLifetime(herds) { lines }
    }

    private static func makeCertificate(_ certificate: String, key: String) throws {
        let arguments = [
            "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
            "-subj", "/CN=localhost", "-days", "2", "-out", certificate, "-keyout", key,
        ]
        let openssl = try ChildProcess("/usr/bin/env", arguments, errorLog: certificate + ".log")
        openssl.wait(timeoutMs: 30_000)
        guard access(certificate, R_OK) == 0, access(key, R_OK) == 0 else {
            throw NotMeasured("openssl created no certificate")
        }
    }
}

/// Clients with a subscription each, which stay connected until this object is released.
final class Herd {
    /// The number of clients that connected per second; 0 if it was not measured.
    let perSecond: Double
    private var descriptors: [Int32]

    init(_ server: floor_server, _ port: Int32, count: Int) throws {
        var seconds = 0.0
        descriptors = [Int32](repeating: -1, count: count)
        guard floor_herd(server, port, Int32(count), &descriptors, &seconds) == 0 else {
            descriptors = []
            throw BenchmarkError("not all of \(count) clients were accepted: errno \(errno)")
        }
        perSecond = Double(count) / seconds
    }

    /// Connects clients with TLS, one after the other.
    init(securePort port: Int32, count: Int) throws {
        perSecond = 0
        descriptors = [Int32](repeating: -1, count: count)
        guard floor_herd_secure(port, Int32(count), &descriptors) == 0 else {
            descriptors = []
            throw BenchmarkError("not all of \(count) clients were accepted with TLS: errno \(errno)")
        }
    }

    deinit {
        for descriptor in descriptors { close(descriptor) }
    }
}
