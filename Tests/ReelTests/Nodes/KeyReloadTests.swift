import Foundation
import ReelLab
import ReelNet
import TestSupport
import Testing

@testable import ReelTool

/// Tests changes of a node's keys while it serves.
@Suite(.timeLimit(.minutes(20))) struct KeyReloadTests {
    @Test("a hang up signal makes a node read its keys again") func aHangUpSignal() async throws {
        let folder = try TemporaryFolder(prefix: "reel-keys-")
        let (secret, half) = (folder.path + "/keys.json", folder.path + "/public.json")
        let old = try await token(secret, half)
        let node = try NodeProcess(["serve", "--data", folder.path + "/data", "--jwks", half], in: folder)
        #expect(try await status(node, old) == 200)

        let new = try await token(secret, half)
        #expect(try await status(node, new) == 401, "nobody has told it")
        node.process.signal(SIGHUP)
        try await eventually("the new keys") { try await status(node, new) == 200 }
        #expect(try await status(node, old) == 401)

        try "nonsense".write(toFile: half, atomically: true, encoding: .utf8)
        node.process.signal(SIGHUP)
        try await eventually("a word in the journal") { node.logger.contains("the keys stay as they were") }
        #expect(try await status(node, new) == 200)
        for word in [old, new] {
            let signature = String(word.split(separator: ".")[2].prefix(20))
            #expect(!node.logger.contains(signature), "no token stands in the journal")
        }
    }

    @Test("a node without keys survives SIGHUP and logs it") func survivesHangUp() async throws {
        let folder = try TemporaryFolder(prefix: "reel-keys-")
        let node = try NodeProcess(["serve", "--data", folder.path + "/data"], in: folder)
        node.process.signal(SIGHUP)
        try await eventually("a word in the journal") { node.logger.contains("nothing to read again") }
        #expect(try await Asker.ask("GET", port: node.port, "/healthz", body: "").status == 200)
    }

    /// Writes new keys, and returns a token signed with them.
    private func token(_ secret: String, _ half: String) async throws -> String {
        try await output(["token", "keygen"]).write(toFile: secret, atomically: true, encoding: .utf8)
        let keys = try await output(["token", "keygen", "--public", secret])
        try keys.write(toFile: half, atomically: true, encoding: .utf8)
        let words = ["token", "issue", "--jwks", secret, "--sub", "ann", "--read", "*", "--for", "3600"]
        return try await output(words).trimmingCharacters(in: .whitespacesAndNewlines)
    }

    private func output(_ words: [String]) async throws -> String {
        let run = await CommandRun(words)
        #expect(run.code == .done, "\(run.errors)")
        return run.output
    }

    private func status(_ node: NodeProcess, _ token: String) async throws -> Int {
        let line = "curl -sS -o /dev/null -w '%{http_code}' -H 'Authorization: Bearer \(token)'"
        return Int(try await Shell.output("\(line) \(node.url)/v1/streams/todo/head")) ?? 0
    }
}
