import ReelLab

/// Faults of brokers.
extension Fault {
    static let brokers: [Fault] = [
        Fault(name: "leader killed", isShort: true) { scene in
            let kafka = try scene.kafka
            let victim = try await scene.leader { $0 != kafka.controller() }
            return try await scene.broker(victim, isLostBy: { kafka.kill(victim) }, for: 3)
        },
        Fault(name: "leader and controller killed") { scene in
            let kafka = try scene.kafka
            guard let victim = kafka.controller() else { throw Scene.NoEffect("there is no controller") }
            let before = "controller \(victim)"
            let proof = try await scene.broker(victim, isLostBy: { kafka.kill(victim) }, for: 3)
            return "\(before), now \(kafka.controller() ?? 0); \(proof)"
        },
        Fault(name: "leader hung 10 s") { scene in
            let kafka = try scene.kafka
            let victim = try await scene.leader { $0 != kafka.controller() }
            let proof = try await scene.broker(
                victim,
                isLostBy: {
                    kafka.pause(victim)
                    try await scene.gateways(say: ["degraded", "unavailable"], all: false)
                },
                for: 10
            ) {
                guard kafka.process(victim)?.state == "T" else {
                    throw Scene.NoEffect("broker \(victim) is not stopped")
                }
            }
            return "state T for 10 s; \(proof)"
        },
        Fault(
            name: "follower killed",
            prepare: { scene in
                let kafka = try scene.kafka
                // A broker that was restarted leads no partition.
                kafka.stop(1)
                try kafka.start([1])
                try await scene.inSync()
            }
        ) { scene in
            let kafka = try scene.kafka
            guard try scene.partitions().allSatisfy({ $0.leader != 1 }) else { throw Scene.NoEffect("broker 1 leads") }
            kafka.kill(1)
            try await scene.eventually("broker 1 is out of sync") {
                try scene.partitions().allSatisfy { !$0.inSync.contains(1) }
            }
            try await scene.seconds(3)
            try kafka.start([1])
            try await scene.inSync()
            return "broker 1, leader of nothing, was out of sync"
        },
        Fault(name: "all brokers restarted one by one") { scene in
            let kafka = try scene.kafka
            var moves: [String] = []
            for broker in 1...3 {
                let led = try scene.partitions().count { $0.leader == broker }
                let process = kafka.process(broker)
                kafka.stop(broker, timeoutMs: 60_000)
                try await scene.eventually("broker \(broker) leads nothing") {
                    try scene.partitions().allSatisfy { $0.leader != broker }
                }
                try kafka.start([broker])
                try await scene.inSync()
                guard let process, process.hasEnded(), let next = kafka.process(broker), next.pid != process.pid else {
                    throw Scene.NoEffect("broker \(broker) is the process that it was")
                }
                moves.append("\(led)→0")
            }
            return "3 new processes; partitions led: " + moves.joined(separator: ", ")
        },
        Fault(name: "all brokers down 30 s") { scene in
            let kafka = try scene.kafka
            for broker in 1...3 { kafka.kill(broker) }
            let acked = try await scene.lastAcks()
            try await scene.gateways(say: ["unavailable"], all: true)
            try await scene.seconds(30)
            let more = try await scene.statistics().acked - acked
            try kafka.start([1, 2, 3])
            guard more < 100 else { throw Scene.NoEffect("\(more) acks without a broker") }
            try await scene.inSync()
            return "3 × SIGKILL, \(more) acks in 30 s, gateways ready"
        },
        Fault(name: "too few replicas in sync") { scene in
            let kafka = try scene.kafka
            try scene.minimumInSync(3)
            let victim = try await scene.leader { $0 != kafka.controller() }
            kafka.kill(victim)
            try await scene.eventually("a replica is missing everywhere") {
                try scene.partitions().allSatisfy { $0.inSync.count == 2 }
            }
            let acked = try await scene.lastAcks()
            try await scene.gateways(say: ["unavailable"], all: true)
            try await scene.seconds(5)
            let more = try await scene.statistics().acked - acked
            guard more == 0 else { throw Scene.NoEffect("\(more) acks with 2 replicas of 3 that are wanted") }
            try kafka.start([victim])
            try await scene.inSync()
            try scene.minimumInSync(2)
            return "2 of 3 in sync, 3 wanted: no ack in 5 s"
        },
    ]
}
