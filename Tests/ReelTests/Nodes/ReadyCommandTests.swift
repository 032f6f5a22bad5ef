import Foundation
import TestSupport
import Testing

@testable import ReelLab

/// Tests `reel ready` without an address, as the image's health check runs it.
@Suite(.timeLimit(.minutes(10)))
struct ReadyCommandTests {
    @Test("it asks where the node of this machine listens, over TLS with the node's own certificate")
    func own() async throws {
        let folder = try TemporaryFolder(prefix: "reel-ready-")
        let path = folder.path
        for name in ["node", "other"] {
            _ = try await Shell.output(
                "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=\(name) "
                    + "-addext subjectAltName=DNS:\(name).example -keyout '\(path)/\(name).key' -out '\(path)/\(name)' 2>&1"
            )
        }
        let node = try LocalNode(
            name: "serve",
            reel: BuiltProgram.path,
            arguments: [
                "serve", "--data", path + "/data", "--tls-cert", path + "/node", "--tls-key", path + "/node.key",
                "--handshake-ms", "600000",
            ],
            folder: path
        )
        let everywhere = ["--listen", "0.0.0.0:\(node.port)"]
        let secure = ["--tls-cert", path + "/node"]
        let run = try await BuiltProgram.run(["ready", "--wait", "60"] + everywhere + secure)
        #expect(run.code == 0 && run.output == "https://127.0.0.1:\(node.port): ready\n", "\(run)")
        let open = try await BuiltProgram.run(["ready"] + everywhere)
        #expect(open.code == 1 && open.output.contains("https://"), "\(open)")
        let other = try await BuiltProgram.run(["ready"] + everywhere + ["--tls-cert", path + "/other"])
        #expect(other.code == 3 && other.output.contains("certificate"), "\(other)")
        let missing = try await BuiltProgram.run(["ready"] + everywhere + ["--tls-cert", path + "/nothing"])
        #expect(missing.code != 0 && missing.errors.contains("nothing"), "\(missing)")
    }

    @Test("ready refuses a port that no node can have and suggests an option")
    func refusesPortZero() async throws {
        let run = try await BuiltProgram.run(["ready", "--listen", "127.0.0.1:0"])
        #expect(run.code == 2 && run.errors.contains("name the node with --url"), "\(run)")
    }
}
