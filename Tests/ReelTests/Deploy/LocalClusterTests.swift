import Foundation
import ReelLab
import TestSupport
import Testing

@testable import ReelTool

/// Tests that deploy/local/up runs the topology of docker-compose.yml, from the same files, and leaves nothing behind.
@Suite(
    .serialized,
    .enabled(if: Installed.haproxy, "haproxy is missing, so no cluster was run: apt-get install haproxy")
)
struct LocalClusterTests {
    private static let up = repository.appending(path: "deploy/local/up").path

    private static let failover = repository.appending(path: "deploy/local/failover").path

    /// Runs a line of shell inside a cluster of `reel`.
    ///
    /// - Parameter settings: More variables, such as `RATE=50`.
    private func inCluster(
        _ line: String,
        port: Int,
        reel: String = BuiltProgram.path,
        settings: String = "",
        seconds: Int = 300
    ) async throws -> BuiltProgram.Run {
        let variables = "REEL=\"$0\" PORT=\(port) PARTITIONS=2 \(settings)"
        return try await Shell.run(
            "unset KAFKA_HOME; \(variables) exec \"$1\" bash -euo pipefail -c \"$2\"",
            [reel, Self.up, line],
            seconds: seconds
        )
    }

    @Test("the front stays ready while a killed gateway restarts") func frontSurvivesKilledGateway() async throws {
        let line = """
            before=$(cat $CLUSTER/gateway-2.pid)
            kill -KILL $before
            for i in $(seq 30); do
                "$REEL" ready
            done
            for i in $(seq 1000); do
                now=$(cat $CLUSTER/gateway-2.pid)
                if [ $now != $before ] && "$REEL" ready --url http://127.0.0.1:$((PORT + 2)); then break; fi
                sleep 0.1
            done
            test $now != $before
            ls $CLUSTER/*.pid | wc -l
            echo $CLUSTER
            exit 7
            """
        let port = await Self.freePort()
        let run = try await inCluster(line, port: port)
        #expect(run.code == 7, "\(run)")
        let folder = String(run.output.split(separator: "\n").last ?? "")
        #expect(folder.contains("reel-cluster-"))
        #expect(!FileManager.default.fileExists(atPath: folder), "\(folder) is still there")
        for port in port..<port + Self.ports {
            #expect(await !Self.answers(port), "\(port) still answers")
        }
    }

    @Test("a node starts again after the number of partitions has changed") func aNodeStartsAgain() async throws {
        let line = """
            "$REEL" epoch new --log "$REEL_LOG" --partitions 3
            before=$(cat $CLUSTER/gateway-2.pid)
            kill -KILL $before
            for i in $(seq 1000); do
                now=$(cat $CLUSTER/gateway-2.pid)
                if [ $now != $before ] && "$REEL" ready --url http://127.0.0.1:$((PORT + 2)); then exit 7; fi
                sleep 0.1
            done
            cat $CLUSTER/gateway-2.log
            """
        let run = try await inCluster(line, port: await Self.freePort())
        #expect(run.code == 7, "\(run)")
        #expect(run.output.contains("2 partitions") && run.output.contains("3 partitions"), "\(run)")
    }

    @Test("a node that fails at its first start makes the log as it was asked for") func aNodeThatFails() async throws {
        let folder = try TemporaryFolder(prefix: "reel-fails-")
        let reel = folder.path + "/reel"
        // Each node fails once; its folder identifies it.
        let script = """
            #!/bin/bash
            last=${@: -1}
            case $1 in
            gateway | snapshot) if mkdir "\(folder.path)/${last##*/}" 2>/dev/null; then exit 1; fi ;;
            esac
            exec "\(BuiltProgram.path)" "$@"
            """
        try script.write(toFile: reel, atomically: true, encoding: .utf8)
        try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: reel)
        let line = """
            "$REEL" epoch new --log "$REEL_LOG" --partitions 3
            ls "$(dirname "$REEL")"
            exit 7
            """
        let run = try await inCluster(line, port: await Self.freePort(), reel: reel)
        #expect(run.code == 7, "\(run)")
        #expect(run.output.contains("2 partitions") && run.output.contains("gateway-1\n"), "\(run)")
    }

    @Test("a shell in a cluster reads what is typed") func aShellInA() async throws {
        let port = await Self.freePort()
        let run = try await Shell.run(
            "unset KAFKA_HOME; echo 'echo $REEL_URL; exit 7' | REEL=\"$0\" PORT=\(port) PARTITIONS=2 \"$1\" bash",
            [BuiltProgram.path, Self.up],
            seconds: 300
        )
        #expect(run.code == 7 && run.output == "http://127.0.0.1:\(port)\n", "\(run)")
    }

    @Test(
        "the cluster script reports a wrong setting before it starts anything",
        arguments: [
            (
                "PARTITIONS=abc",
                "PARTITIONS is `abc`; expected is a whole number from 1 to \(LogArguments.partitionsMax)"
            ),
            ("PARTITIONS=0", "PARTITIONS is `0`; expected is a whole number from 1 to \(LogArguments.partitionsMax)"),
            ("PORT=abc", "PORT is `abc`; expected is a whole number from 1 to 65519"),
            ("PORT=99990", "PORT is `99990`; expected is a whole number from 1 to 65519"),
        ]
    ) func reportsWrongSetting(setting: String, says: String) async throws {
        try await refuses("unset KAFKA_HOME; REEL=\"$1\" \(setting) exec \"$0\" true", Self.up, "cluster: \(says)")
    }

    @Test(
        "the failover script reports a wrong setting",
        arguments: [
            ("REEL_URL=", "REEL_URL is not set; run it in a cluster: deploy/local/up deploy/local/failover"),
            ("RATE=0", "RATE is `0`; expected is a whole number from 1 to 999999"),
            ("HANG=abc", "HANG is `abc`; expected is a whole number from 1 to 999999"),
            ("GOAL=2", "GOAL is `2`; expected is a time, such as 2s or 1500ms"),
        ]
    ) func failoverReportsWrongSetting(setting: String, says: String) async throws {
        let line = "CLUSTER=/nowhere PORT=1 REEL=/nowhere REEL_LOG=l REEL_URL=u \(setting) exec \"$0\""
        try await refuses(line, Self.failover, "failover: \(says)")
    }

    /// Checks that a wrong setting is bad usage with an error of one line. `$0` is the script, `$1` the program.
    private func refuses(_ line: String, _ script: String, _ says: String) async throws {
        let run = try await Shell.run(line, [script, BuiltProgram.path])
        #expect(run.code == 2, "\(run)")
        #expect(run.errors == "\(says)\n", "\(run)")
    }

    /// The run is as short as possible, and its goal cannot be reached. The table is complete, and the files stay.
    @Test("failover shows what clients saw and keeps the evidence") func failoverShowsWhatClients() async throws {
        let run = try await inCluster(
            "exec '\(Self.failover)'",
            port: await Self.freePort(),
            settings: "PUBLISHERS=4 READERS=4 RATE=50 PACE=1 HANG=1 GOAL=0ms",
            seconds: 900
        )
        let stays = try #require(run.errors.firstMatch(of: /what it wrote stays in ([^,]+), until/), "\(run)")
        let folder = String(stays.1)
        defer { try? FileManager.default.removeItem(atPath: folder) }
        #expect(run.code == 1, "\(run)")
        for said in [
            "4 clients publish 50 events a second, 4 listen", "gateway-2 is killed (pid", "gateway-3 hangs (pid",
            "gateway-3 continues", "gateway-1 is told to leave (pid", "snapshot-1 is killed (pid",
            "no broker is killed",
            "a gateway that hangs inside a commit holds up all writes",
            "expected   pause.p99<0ms: MISSED", "and the doctor afterwards:\n",
        ] {
            #expect(run.output.contains(said), "\(said)\n\(run.output)")
        }
        #expect(!run.output.contains("does not say all that the table shows"), "\(run.output)")
        for (name, expected) in [
            ("nothing", "-"), ("gateway killed", "< 0ms"), ("gateway hung 1 s", "-"), ("gateway leaves", "-"),
            ("snapshot node killed", "-"),
        ] {
            let found = run.output.split(separator: "\n").first { $0.hasPrefix(name + "  ") }
            let line = try #require(found, "\(name)\n\(run.output)")
            let words = line.dropFirst(name.count).split(separator: " ").map { String($0) }
            try #require(words.count > 11, "\(line)")
            let (head, middle, tail) = (words.prefix(5), words[5..<(words.count - 6)], words.suffix(6).map { $0 })
            #expect(head[0] != "0" && Int(head[0]) != nil, "\(line)")
            for pause in [head[1], head[3], tail[0]] { #expect(Double(pause) != nil, "\(line)") }
            #expect(middle.joined(separator: " ") == expected, "\(line)")
            for count in tail[2...4] { #expect(Int(count) != nil, "\(line)") }
            #expect(tail[5] == "valid", "\(line)")
        }
        for file in ["run-2/log.jsonl", "run-2/publisher-0.history.jsonl", "run-2.verdict", "gateway-2.log"] {
            #expect(FileManager.default.fileExists(atPath: "\(folder)/\(file)"), "\(file)")
        }
    }

    /// The number of adjacent ports of a cluster. They are below the ports that the kernel assigns to connections.
    private static let ports = 11

    private static func freePort() async -> Int {
        while true {
            let first = Int.random(in: 1_250..<2_000) * 16
            var isFree = true
            for port in first..<first + ports where await answers(port) { isFree = false }
            if isFree { return first }
        }
    }

    private static func answers(_ port: Int) async -> Bool {
        (try? await Asker.ask("GET", port: UInt16(port), "/", body: "")) != nil
    }

    @Test("a port that is taken is named") func aPortThatIs() async throws {
        try await eventually("the port of a node is named") {
            let folder = try TemporaryFolder(prefix: "reel-taken-")
            let node = try NodeProcess.gateway(in: folder)
            let run = try await inCluster("true", port: Int(node.port) - 3)
            #expect(run.code == 1)
            // The adjacent ports may belong to another test.
            return run.errors.contains("port \(node.port), for gateway-3, is taken: set PORT to another")
        }
    }

    @Test("a port that any connection may get is refused") func aPortThatAny() async throws {
        let low = try #require(
            Int(
                String(contentsOfFile: "/proc/sys/net/ipv4/ip_local_port_range", encoding: .utf8)
                    .prefix { $0.isNumber }
            )
        )
        try await eventually("the port is refused") {
            let run = try await inCluster("true", port: low - 1)
            #expect(run.code == 1)
            // Another test may listen on the port at this time.
            return run.errors.contains("is one of those that connections get")
        }
    }
}
