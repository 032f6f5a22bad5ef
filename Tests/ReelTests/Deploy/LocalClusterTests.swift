import Foundation
import ReelLab
import Testing

@testable import reel

/// deploy/local/up runs the topology of docker-compose.yml, from the same files, and leaves nothing.
@Suite(
    .serialized,
    .enabled(if: Installed.haproxy, "haproxy is missing, so no cluster was run: apt-get install haproxy")
)
struct LocalClusterTests {
    private static let up = repository.appending(path: "deploy/local/up").path

    /// Runs a line of shell inside a cluster.
    private func inCluster(_ line: String, port: Int) async throws -> BuiltProgram.Run {
        try await Shell.run(
            "unset KAFKA_HOME; REEL=\"$0\" PORT=\(port) PARTITIONS=2 exec \"$1\" bash -euo pipefail -c \"$2\"",
            [BuiltProgram.path, Self.up, line]
        )
    }

    @Test func aGatewayIsKilledAndNobodyAtTheFrontNotices() async throws {
        let line = """
            before=$(cat $CLUSTER/gateway-2.pid)
            kill -KILL $before
            for i in $(seq 30); do
                "$REEL" ready
            done
            for i in $(seq 200); do
                now=$(cat $CLUSTER/gateway-2.pid)
                if [ $now != $before ] && "$REEL" ready --url http://127.0.0.1:$((PORT + 2)); then break; fi
                sleep 0.1
            done
            test $now != $before
            ls $CLUSTER/*.pid | wc -l
            echo $CLUSTER
            exit 7
            """
        let run = try await inCluster(line, port: 19_350)
        #expect(run.code == 7, "\(run)")
        let folder = String(run.output.split(separator: "\n").last ?? "")
        #expect(folder.contains("reel-cluster-"))
        #expect(!FileManager.default.fileExists(atPath: folder), "\(folder) is still there")
        for port in 19_350...19_360 {
            #expect((try? await Asker.ask("GET", port: UInt16(port), "/", body: "")) == nil, "\(port) still answers")
        }
    }

    @Test func aPortThatIsTakenIsNamed() async throws {
        let folder = try TemporaryFolder(prefix: "reel-taken-")
        let node = try NodeProcess.gateway(in: folder)
        let run = try await inCluster("true", port: Int(node.port) - 3)
        #expect(run.code == 1)
        #expect(run.errors.contains("port \(node.port), for gateway-3, is taken: set PORT to another"), "\(run)")
    }
}
