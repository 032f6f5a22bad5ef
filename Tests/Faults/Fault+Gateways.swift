import Glibc
import ReelLab

/// Faults of gateways. Their clients reconnect to the other gateway.
extension Fault {
    static let gateways: [Fault] = [
        Fault(name: "gateway killed", isShort: true, needsKafka: false) { scene in
            let gateway = try await scene.busiestGateway()
            let lost = try await scene.statistics().reconnects
            gateway.process.killNow()
            try await scene.eventually("its clients miss it") { try await scene.statistics().reconnects > lost }
            let count = try await scene.statistics().reconnects - lost
            try await scene.acks(500)
            try gateway.restart()
            return "SIGKILL, \(count) connections lost"
        },
        Fault(name: "gateway hung 15 s", needsKafka: false) { scene in
            let gateway = try await scene.busiestGateway()
            let lost = try await scene.statistics().reconnects
            gateway.process.pause()
            try await scene.eventually("it is stopped") { gateway.process.state == "T" }
            try await scene.seconds(15)
            try await scene.eventually("its clients leave it") { try await scene.statistics().reconnects > lost }
            let count = try await scene.statistics().reconnects - lost
            gateway.process.resume()
            return "state T for 15 s, \(count) connections given up"
        },
        Fault(name: "gateway stopped", needsKafka: false) { scene in
            let gateway = scene.nodes.gateways[0]
            let lost = try await scene.statistics().reconnects
            gateway.process.signal(SIGTERM)
            try await scene.eventually("it ends") { gateway.process.hasEnded() }
            let count = try await scene.statistics().reconnects - lost
            let end = gateway.process.end.map { "\($0)" } ?? "nothing"
            guard gateway.process.end == .exited(0) else { throw Scene.NoEffect("it ended with \(end)") }
            try gateway.restart()
            return "SIGTERM, \(end), \(count) clients went"
        },
    ]
}
