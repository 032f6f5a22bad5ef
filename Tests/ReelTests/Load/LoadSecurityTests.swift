import Foundation
import Testing

@testable import ReelLab

/// `reel load` where the nodes speak TLS and want to know who asks.
@Suite(.timeLimit(.minutes(5))) struct LoadSecurityTests {
    @Test func clientsShowTheirTokenOverTLS() async throws {
        let folder = try TemporaryFolder(prefix: "reel-load-tls-")
        let path = folder.path
        _ = try await Shell.output(
            "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=node "
                + "-addext subjectAltName=IP:127.0.0.1 -keyout '\(path)/key' -out '\(path)/cert' 2>&1"
        )
        let keys = try await BuiltProgram.run(["token", "keys"])
        try keys.output.write(toFile: path + "/keys", atomically: false, encoding: .utf8)
        let made = try await BuiltProgram.run(
            [
                "token", "make", "--keys", path + "/keys", "--sub", "load", "--read", "*", "--publish", "*", "--for",
                "600",
            ]
        )
        let token = made.output.trimmingCharacters(in: .newlines)
        let node = try LocalNode(
            name: "serve",
            reel: BuiltProgram.path,
            arguments: [
                "serve", "--data", path + "/data", "--keys", path + "/keys", "--tls-cert", path + "/cert", "--tls-key",
                path + "/key",
            ],
            folder: path
        )
        let words = ["load", "--url", "https://127.0.0.1:\(node.port)", "--seconds", "2"]
        async let known = BuiltProgram.run(
            words + ["--ca", path + "/cert", "--token", token, "--history", path + "/run"]
        )
        async let nameless = BuiltProgram.run(words + ["--ca", path + "/cert"])
        async let distrustful = BuiltProgram.run(words + ["--token", token])
        let run = try await known
        #expect(run.code == 0 && run.output.contains("200 acked, 0 not"), "\(run)")
        #expect(
            FileManager.default.fileExists(atPath: path + "/run/load.snapshot.jsonl"),
            "it was asked for with the token"
        )
        let refused = try await nameless
        #expect(refused.code == 3 && refused.errors.contains("token"), "\(refused)")
        let doubtful = try await distrustful
        #expect(doubtful.code == 3 && doubtful.errors.contains("certificate"), "\(doubtful)")
    }
}
