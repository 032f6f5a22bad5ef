import Foundation
import ReelBase
import ReelCore
import ReelLab

/// The parts that all runs share: the program, the brokers if there are any, and the folder for evidence.
final class Ground {
    let reel: String
    /// The folder with one folder for each fault: histories, the dump of the log, and the log lines of nodes.
    let evidence: String
    private let brokers: LocalKafka?

    /// Starts three brokers of this Kafka. Without a Kafka, the embedded log is used instead.
    init(_ home: KafkaHome?, evidence: String) throws {
        self.evidence = evidence
        reel = try Self.siblingProgram("reel")
        brokers = try home.map { try LocalKafka($0, brokers: 3) }
    }

    var hasKafka: Bool { brokers != nil }

    /// Returns the brokers, or throws if there are none.
    func kafka() throws -> LocalKafka {
        guard let brokers else { throw Scene.NoEffect("there are no brokers") }
        return brokers
    }

    /// Deletes the old log, creates a new one, and returns the value of `--log` for it.
    func makeLog(in folder: String) throws -> String {
        guard let brokers else { return "sqlite:\(folder)/log.sqlite" }
        let log = "kafka:\(brokers.bootstrap)"
        let topics = "org.apache.kafka.tools.TopicCommand"
        if try brokers.tool(topics, ["--list"]).contains("reel.") {
            try brokers.tool(topics, ["--delete", "--topic", "reel[.].*"])
            try wait("the old topics are gone") { !(try brokers.tool(topics, ["--list"]).contains("reel.")) }
        }
        let create = ["topic", "create", "--log", log, "--partitions", "6", "--replication", "3"]
        try Self.again {
            let (code, said) = try run(reel, create)
            guard code == 0 else { throw Scene.NoEffect("no topic could be made: \(said)") }
        }
        return log
    }

    /// Repeats a function up to ten times with pauses of 2 s, because a paused broker can make commands and nodes fail
    /// for a while.
    static func again<T>(_ body: () throws -> T) throws -> T {
        for _ in 0..<9 {
            if let result = try? body() { return result }
            sleep(2)
        }
        return try body()
    }

    /// Runs a program until it ends, and returns its exit code and output. If `output` is set, standard output is
    /// written to that file instead.
    func run(_ program: String, _ arguments: [String], output: String? = nil) throws -> (code: Int32, said: String) {
        let folder = try TemporaryFolder(prefix: "reel-run-")
        let log = folder.path + "/said"
        let process = try ChildProcess(program, arguments, outputLog: output ?? log, errorLog: log)
        let end = process.wait(timeoutMs: 600_000)
        let said = (try? String(contentsOfFile: log, encoding: .utf8)) ?? ""
        guard case .exited(let code) = end else { return (-1, said) }
        return (code, said)
    }

    private func wait(_ what: String, _ isTrue: () throws -> Bool) throws {
        let end = MonotonicClock.nowMs() + 120_000
        while try !isTrue() {
            guard MonotonicClock.nowMs() < end else { throw Scene.NoEffect("in vain: \(what)") }
            usleep(100_000)
        }
    }

    /// Returns the path of a program that was built together with this one.
    private static func siblingProgram(_ name: String) throws -> String {
        let own = try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
        return URL(filePath: own).deletingLastPathComponent().appending(path: name).path
    }
}
