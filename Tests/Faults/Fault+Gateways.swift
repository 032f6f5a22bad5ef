import Glibc
import ReelLab

/// What happens to gateways: their clients go to the other one.
extension Fault {
    static let gateways: [Fault] = [
        Fault(name: "gateway killed", isShort: true, needsKafka: false) { trial in
            let gateway = trial.nodes.gateways[0]
            let lost = try await trial.statistics().reconnects
            gateway.process.killNow()
            try await trial.eventually("its clients miss it") { try await trial.statistics().reconnects > lost }
            let count = try await trial.statistics().reconnects - lost
            try await trial.acks(500)
            try gateway.restart()
            return "SIGKILL, \(count) connections lost"
        },
        Fault(name: "gateway hung 15 s", needsKafka: false) { trial in
            let gateway = trial.nodes.gateways[0]
            let lost = try await trial.statistics().reconnects
            gateway.process.signal(SIGSTOP)
            try await trial.eventually("it is stopped") { gateway.process.state == "T" }
            try await trial.seconds(15)
            let count = try await trial.statistics().reconnects - lost
            gateway.process.signal(SIGCONT)
            guard count > 0 else { throw Trial.NoEffect("nobody left the gateway that hung") }
            return "state T for 15 s, \(count) connections given up"
        },
        Fault(name: "gateway stopped", needsKafka: false) { trial in
            let gateway = trial.nodes.gateways[0]
            let lost = try await trial.statistics().reconnects
            gateway.process.signal(SIGTERM)
            try await trial.eventually("it ends") { gateway.process.hasEnded() }
            let count = try await trial.statistics().reconnects - lost
            let end = gateway.process.end.map { "\($0)" } ?? "nothing"
            guard gateway.process.end == .exited(0) else { throw Trial.NoEffect("it ended with \(end)") }
            try gateway.restart()
            return "SIGTERM, \(end), \(count) clients went"
        },
    ]
}
