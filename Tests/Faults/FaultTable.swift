import Foundation
import ReelLab

/// `reel-faults [--short] [NAME…]` tries one fault after the other, and prints a row for each of them.
enum FaultTable {
    static func main() async -> Int32 {
        var words = CommandLine.arguments.dropFirst()
        let isShort = words.first == "--short"
        if isShort { words = words.dropFirst() }
        do {
            let home = try KafkaHome.named()
            if home == nil { print("NOT TRIED: what needs brokers; KAFKA_HOME names no Kafka") }
            let environment = ProcessInfo.processInfo.environment
            let seed = environment["REEL_SEED"].flatMap { UInt64($0) } ?? UInt64.random(in: 0..<1 << 32)
            let evidence = try TemporaryFolder(prefix: "reel-faults-")
            print("REEL_SEED=\(seed), evidence in \(evidence.path)")
            let ground = try Ground(home, evidence: evidence.path)
            let faults = Fault.all.filter { fault in
                (ground.hasKafka || !fault.needsKafka) && (!isShort || fault.isShort)
                    && (words.isEmpty || words.contains { fault.name.contains($0) })
            }
            guard !faults.isEmpty else {
                print("no fault that can be tried here is called so; there are:")
                for fault in Fault.all { print("  \(fault.name)\(fault.needsKafka ? ", on brokers" : "")") }
                return 2
            }
            print(FaultRun.head)
            fflush(nil)
            var wrong = 0
            for fault in faults {
                let run = await FaultRun.run(fault, on: ground, seed: seed)
                print(run.lines)
                fflush(nil)
                if !run.problems.isEmpty { wrong += 1 }
            }
            if wrong > 0 { evidence.keep = true }
            print(wrong == 0 ? "All held." : "\(wrong) of \(faults.count) went wrong; the evidence stays.")
            return wrong == 0 ? 0 : 1
        } catch {
            print("\(error)")
            return 1
        }
    }
}
