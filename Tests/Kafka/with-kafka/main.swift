import Foundation
import ReelLab

// `with-kafka BROKERS COMMAND…` starts a cluster of BROKERS brokers from the Kafka in KAFKA_HOME, and runs the command.
// REEL_KAFKA gives the command the address of the cluster. The exit code is that of the command.

struct CommandError: Error, CustomStringConvertible {
    let description: String
}

func run() throws -> Int32 {
    let words = CommandLine.arguments.dropFirst()
    guard let brokers = words.first.flatMap({ Int($0) }), 1...9 ~= brokers, words.count > 1 else {
        throw CommandError(description: "usage: with-kafka BROKERS COMMAND…")
    }
    guard let home = try KafkaHome.named() else { throw CommandError(description: "KAFKA_HOME names no Kafka") }
    let kafka = try LocalKafka(home, brokers: brokers)
    print("a cluster of \(brokers): \(kafka.bootstrap)")
    fflush(nil)
    let command = Process()
    command.executableURL = URL(filePath: "/usr/bin/env")
    command.arguments = Array(words.dropFirst())
    command.environment = ProcessInfo.processInfo.environment.merging(["REEL_KAFKA": kafka.bootstrap]) { $1 }
    try command.run()
    command.waitUntilExit()
    return command.terminationStatus
}

do {
    exit(try run())
} catch {
    print("with-kafka: \(error)")
    exit(2)
}
