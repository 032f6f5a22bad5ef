import ReelLab

/// What happens to brokers.
extension Fault {
    static let brokers: [Fault] = [
        Fault(name: "leader killed", isShort: true) { trial in
            let kafka = try trial.kafka
            let victim = try trial.leader { $0 != kafka.controller() }
            return try await trial.broker(victim, isLostBy: { kafka.kill(victim) }, for: 3)
        },
        Fault(name: "leader and controller killed") { trial in
            let kafka = try trial.kafka
            guard let victim = kafka.controller() else { throw Trial.NoEffect("there is no controller") }
            let before = "controller \(victim)"
            let proof = try await trial.broker(victim, isLostBy: { kafka.kill(victim) }, for: 3)
            return "\(before), now \(kafka.controller() ?? 0); \(proof)"
        },
        Fault(name: "leader hung 10 s") { trial in
            let kafka = try trial.kafka
            let victim = try trial.leader { $0 != kafka.controller() }
            return try await trial.broker(victim, isLostBy: { kafka.pause(victim) }, for: 10)
        },
        Fault(
            name: "follower killed",
            prepare: { trial in
                let kafka = try trial.kafka
                // A broker that comes back leads nothing.
                kafka.stop(1)
                try kafka.start([1])
                try await trial.inSync()
            }
        ) { trial in
            let kafka = try trial.kafka
            guard try trial.partitions().allSatisfy({ $0.leader != 1 }) else { throw Trial.NoEffect("broker 1 leads") }
            kafka.kill(1)
            try await trial.eventually("broker 1 is out of sync") {
                try trial.partitions().allSatisfy { !$0.inSync.contains(1) }
            }
            try await trial.seconds(3)
            try kafka.start([1])
            try await trial.inSync()
            return "broker 1, leader of nothing, was out of sync"
        },
        Fault(name: "all brokers restarted one by one") { trial in
            let kafka = try trial.kafka
            var moves: [String] = []
            for broker in 1...3 {
                let led = try trial.partitions().count { $0.leader == broker }
                kafka.stop(broker)
                let leads = try trial.partitions().count { $0.leader == broker }
                moves.append("\(led)→\(leads)")
                try kafka.start([broker])
                try await trial.inSync()
            }
            return "partitions led: " + moves.joined(separator: ", ")
        },
        Fault(name: "all brokers down 30 s") { trial in
            let kafka = try trial.kafka
            for broker in 1...3 { kafka.kill(broker) }
            let acked = try await trial.statistics().acked
            try await trial.seconds(30)
            let more = try await trial.statistics().acked - acked
            try kafka.start([1, 2, 3])
            guard more < 100 else { throw Trial.NoEffect("\(more) acks without a broker") }
            try await trial.inSync()
            return "3 × SIGKILL, \(more) acks in 30 s"
        },
        Fault(name: "too few replicas in sync") { trial in
            let kafka = try trial.kafka
            try trial.minimumInSync(3)
            let victim = try trial.leader { $0 != kafka.controller() }
            kafka.kill(victim)
            try await trial.eventually("a replica is missing everywhere") {
                try trial.partitions().allSatisfy { $0.inSync.count == 2 }
            }
            let acked = try await trial.statistics().acked
            try await trial.seconds(5)
            let more = try await trial.statistics().acked - acked
            guard more == 0 else { throw Trial.NoEffect("\(more) acks with 2 replicas of 3 that are wanted") }
            try kafka.start([victim])
            try await trial.inSync()
            try trial.minimumInSync(2)
            return "2 of 3 in sync, 3 wanted: no ack in 5 s"
        },
    ]
}
