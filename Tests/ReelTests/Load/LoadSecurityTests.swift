import Foundation
import Testing

@testable import ReelLab

/// Tests `reel load` on nodes that use TLS and require a token.
@Suite(.timeLimit(.minutes(20))) struct LoadSecurityTests {
    @Test("clients show their token over TLS") func clientsShowTheirToken() async throws {
        let folder = try TemporaryFolder(prefix: "reel-load-tls-")
        let path = folder.path
        _ = try await Shell.output(
            "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=node "
                + "-addext subjectAltName=IP:127.0.0.1 -keyout '\(path)/key' -out '\(path)/cert' 2>&1"
        )
        let keys = try await BuiltProgram.run(["token", "keygen"])
        try keys.output.write(toFile: path + "/keys", atomically: false, encoding: .utf8)
        let made = try await BuiltProgram.run(
            [
                "token", "issue", "--jwks", path + "/keys", "--sub", "load", "--read", "*", "--publish", "*", "--for",
                "600",
            ]
        )
        let token = made.output.trimmingCharacters(in: .newlines)
        let node = try LocalNode(
            name: "serve",
            reel: BuiltProgram.path,
            arguments: [
                "serve", "--data", path + "/data", "--jwks", path + "/keys", "--tls-cert", path + "/cert", "--tls-key",
                path + "/key", "--handshake-ms", "600000",
            ],
            folder: path
        )
        let words = ["load", "--url", "https://127.0.0.1:\(node.port)", "--seconds", "2", "--settle", "120"]
        let wordsOfKnown = words + ["--ca", path + "/cert", "--token", token, "--history", path + "/run"]
        let wordsOfNameless = words + ["--ca", path + "/cert"]
        async let known = BuiltProgram.run(wordsOfKnown, seconds: 300)
        async let nameless = BuiltProgram.run(wordsOfNameless)
        async let distrustful = BuiltProgram.run(words + ["--token", token])
        // A run with a process that was delayed for longer than a load waits for a welcome,
        // or for a state, proves nothing.
        var run = try await known
        for _ in 0..<3 where LoadCommandTests.isHeldUp(run) {
            try? FileManager.default.removeItem(atPath: path + "/run")
            run = try await BuiltProgram.run(wordsOfKnown, seconds: 300)
        }
        #expect(run.code == 0 && run.output.contains("200 acked, 0 not"), "\(run)")
        #expect(
            FileManager.default.fileExists(atPath: path + "/run/load.snapshot.jsonl"),
            "it was asked for with the token"
        )
        var refused = try await nameless
        for _ in 0..<3 where refused.code == 3 { refused = try await BuiltProgram.run(wordsOfNameless) }
        #expect(refused.errors.contains("let a client in"), "\(refused)")
        let others = [
            ["get", "todo"], ["tail", "todo"], ["fetch", "todo"], ["digest", "todo"], ["publish", "todo", "{}"],
            ["streams"],
        ]
        var runs = [refused]
        for command in others {
            runs.append(try await BuiltProgram.run(command + Array(words[1...2]) + ["--ca", path + "/cert"]))
        }
        for run in runs {
            let says = "(unauthorized); give a valid token with --token or REEL_TOKEN\n"
            #expect(run.code == 1 && run.errors.hasSuffix(says), "\(run)")
        }
        var doubtful = try await distrustful
        for _ in 0..<3 where !doubtful.errors.contains("certificate") {
            doubtful = try await BuiltProgram.run(words + ["--token", token])
        }
        #expect(doubtful.code == 3 && doubtful.errors.contains("certificate"), "\(doubtful)")
    }
}
