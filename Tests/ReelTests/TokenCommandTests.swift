import Foundation
import ReelNode
import Synchronization
import Testing

@testable import ReelTool

/// Tests the commands about tokens, and which listeners a node refuses.
@Suite struct TokenCommandTests {
    private let folder: URL

    init() throws {
        folder = FileManager.default.temporaryDirectory.appendingPathComponent("reel-token-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    }

    private func write(_ text: String, _ name: String) throws -> String {
        let path = folder.appendingPathComponent(name).path
        try text.write(toFile: path, atomically: true, encoding: .utf8)
        return path
    }

    @Test("of several keys those without a public half are named") func ofSeveralKeysThose() async throws {
        defer { try? FileManager.default.removeItem(at: folder) }
        var keys: [String] = []
        for (algorithm, name) in [("HS256", "shared"), ("EdDSA", "pair")] {
            let made = await CommandRun(["token", "keygen", "--alg", algorithm, "--kid", name])
            keys.append(String(try #require(made.output.split(separator: "\n").dropFirst().first)))
        }
        let both = try write("{\"keys\":[\(keys.joined(separator: ","))]}", "both")
        let half = await CommandRun(["token", "keygen", "--public", both])
        #expect(half.code == .done && half.output.contains("pair") && !half.output.contains("shared"), "\(half)")
        #expect(half.errors.contains("HS256 keys have no public half and are omitted: `shared`;"), "\(half)")
        let pair = await CommandRun(["token", "keygen", "--public", try write("{\"keys\":[\(keys[1])]}", "pair")])
        #expect(pair.code == .done && pair.errors.isEmpty, "\(pair)")
    }

    @Test("a key makes tokens that its public half takes", arguments: ["EdDSA", "ES256", "HS256"])
    func aKeyMakesTokens(_ algorithm: String) async throws {
        defer { try? FileManager.default.removeItem(at: folder) }
        let made = await CommandRun(["token", "keygen", "--alg", algorithm])
        let keys = try write(made.output, "keys")
        let half = await CommandRun(["token", "keygen", "--public", keys])
        #expect(!half.output.contains(#""d":"#) && !half.output.contains(#""k":"#))
        #expect(half.code == (algorithm == "HS256" ? .badData : .done), "\(half)")
        if algorithm == "HS256" {
            #expect(half.output.isEmpty && half.errors.contains("an HS256 key has no public half"), "\(half)")
        }
        for word in ["--alg", "--kid"] {
            let both = await CommandRun(["token", "keygen", "--public", keys, word, algorithm])
            #expect(both.code == .usage && both.errors.contains("--public creates no key"), "\(both)")
        }
        let checking = algorithm == "HS256" ? keys : try write(half.output, "public")
        let token = await CommandRun([
            "token", "issue", "--jwks", keys, "--sub", "ann", "--read", "todo-*", "--publish", "todo-7", "--for",
            "3600",
        ])
        #expect(token.code == .done, "\(token.errors)")
        let file = try write(token.output, "token")
        let shown = await CommandRun(["token", "inspect", "--jwks", checking, file])
        #expect(shown.code == .done, "\(shown.errors)")
        #expect(shown.output.contains("ann") && shown.output.contains("todo-*"))
        let secret = String(token.output.split(separator: ".")[2].prefix(20))
        #expect(!shown.output.contains(secret), "the signature is not repeated")
        let others = await CommandRun(["token", "inspect", "--jwks", keys, try write(token.output + "x", "other")])
        #expect(others.code == .badData)
        #expect(!others.errors.contains(secret))
        if algorithm != "HS256" {
            let unable = await CommandRun(["token", "issue", "--jwks", checking, "--sub", "ann"])
            #expect(unable.errors.contains("found only the public half of the key in `\(checking)`"), "\(unable)")
            #expect(unable.errors.contains("name with --jwks the file that `reel token keygen` printed"), "\(unable)")
        }
    }

    @Test("token inspect prints the content of a refused token and then the reason") func inspectsRefusedToken()
        async throws
    {
        defer { try? FileManager.default.removeItem(at: folder) }
        let keys = try write(await CommandRun(["token", "keygen"]).output, "keys")
        let key = try #require(
            try TokenKeys(parsing: Array(String(contentsOfFile: keys, encoding: .utf8).utf8)).keys.first
        )
        let grant = TokenGrant(
            subject: "ann",
            expiresAt: 1_000,
            read: [try #require(StreamPattern("todo-*"))],
            publish: []
        )
        let expired = try #require(TokenMint(key).token(grant, now: 900))
        let shown = await CommandRun(["token", "inspect", "--jwks", keys, try write(expired, "expired")])
        #expect(shown.code == .badData && shown.errors.contains("the token expired "), "\(shown)")
        #expect(shown.output.hasPrefix("subject  ann\nexpires  ") && shown.output.contains(" s ago\nread     todo-*\n"))
        let other = await CommandRun(["token", "inspect", "--jwks", keys, try write("one.two", "other")])
        #expect(other.code == .badData && other.output.isEmpty, "\(other)")
        #expect(other.errors.contains("expected is a JWT, three parts parted by dots"), "\(other)")
    }

    @Test("the rights inspect and admin are written into a token and shown")
    func rights() async throws {
        defer { try? FileManager.default.removeItem(at: folder) }
        let keys = try write(await CommandRun(["token", "keygen"]).output, "keys")
        let words = ["token", "issue", "--jwks", keys, "--sub", "ann"]
        let token = await CommandRun(words + ["--inspect", "todo-*", "--inspect", "b", "--admin", "*"])
        #expect(token.code == .done && token.errors.isEmpty, "\(token)")
        let shown = await CommandRun(["token", "inspect", "--jwks", keys, try write(token.output, "token")])
        #expect(shown.code == .done && shown.output.hasSuffix("publish  \ninspect  todo-* b\nadmin    *\n"), "\(shown)")
        let empty = await CommandRun(words)
        #expect(empty.code == .done && empty.errors.contains("the token gives no right"), "\(empty)")
        let wrong = await CommandRun(words + ["--inspect", "a*b"])
        #expect(wrong.code == .usage && wrong.errors.contains("`a*b` is not a pattern"), "\(wrong)")
    }

    @Test("a missing key file and an unknown kid are errors with advice")
    func missingKeys() async throws {
        defer { try? FileManager.default.removeItem(at: folder) }
        let none = folder.path + "/none"
        for words in [
            ["keygen", "--public", none], ["issue", "--jwks", none, "--sub", "a"], ["inspect", "--jwks", none],
        ] {
            let run = await CommandRun(["token"] + words)
            #expect(run.code == .failed, "\(run)")
            #expect(run.errors.contains("the key file `\(none)` cannot be read: No such"), "\(run)")
            #expect(run.errors.contains("create a file with `reel token keygen`"), "\(run)")
        }
        let keys = try write(await CommandRun(["token", "keygen", "--kid", "mine"]).output, "keys")
        let other = await CommandRun(["token", "issue", "--jwks", keys, "--sub", "ann", "--kid", "other"])
        #expect(other.code == .usage, "\(other)")
        #expect(other.errors.contains("found no key with the kid `other` in `\(keys)`, expected one of `mine`"))
        let others = try write(await CommandRun(["token", "keygen", "--kid", "theirs"]).output, "others")
        let token = try write(await CommandRun(["token", "issue", "--jwks", keys, "--sub", "ann"]).output, "token")
        let shown = await CommandRun(["token", "inspect", "--jwks", others, token])
        #expect(shown.code == .badData && shown.errors.contains("is not in the key file; expected"), "\(shown)")
        #expect(shown.errors.contains("add the public half of its own key to the file"), "\(shown)")
    }

    @Test(
        "a node warns of a key file with a secret half beside its public one",
        arguments: [("EdDSA", true, true), ("ES256", true, true), ("EdDSA", false, false), ("HS256", true, false)]
    )
    func secretHalf(algorithm: String, hasSecret: Bool, isWarned: Bool) async throws {
        defer { try? FileManager.default.removeItem(at: folder) }
        var keys = try write(await CommandRun(["token", "keygen", "--alg", algorithm]).output, "keys")
        if !hasSecret { keys = try write(await CommandRun(["token", "keygen", "--public", keys]).output, "public") }
        let lines = Mutex<[String]>([])
        try TokenGate(file: keys).warnOfSecrets(Logger { line in lines.withLock { $0.append(line) } })
        let said = lines.withLock { $0 }
        #expect(said.count == (isWarned ? 1 : 0), "\(said)")
        guard isWarned else { return }
        #expect(said[0].contains(#"level=warning event="the key file has a secret half" file=\#(keys) "#), "\(said)")
        #expect(said[0].contains("reel token keygen --public FILE"), "\(said)")
    }

    @Test("the token command names an invalid key file") func namesInvalidKeyFile() async throws {
        defer { try? FileManager.default.removeItem(at: folder) }
        let file = try write("[]", "letter")
        for words in [
            ["keygen", "--public", file], ["issue", "--jwks", file, "--sub", "a"], ["inspect", "--jwks", file],
        ] {
            let run = await CommandRun(["token"] + words)
            #expect(run.code == .badData && run.errors.hasPrefix("reel: `\(file)`: "), "\(run)")
        }
    }

    @Test("a node for other machines wants keys", arguments: ["serve", "gateway", "snapshot"])
    func aNodeForOther(_ command: String) async throws {
        defer { try? FileManager.default.removeItem(at: folder) }
        for listen in ["0.0.0.0:0", "[::]:0", "*:0"] {
            let run = await CommandRun([command, "--listen", listen, "--data", folder.path])
            #expect(run.code == .usage)
            #expect(run.errors.contains("--insecure"), "\(run.errors)")
        }
        let missing = await CommandRun([command, "--jwks", folder.path + "/none"])
        #expect(missing.code == .failed)
        #expect(missing.errors.contains("/none cannot be read: No such file or directory; expected is a JWK Set"))
        #expect(missing.errors.contains("make one, or correct --jwks"), "\(missing)")
        let elsewhere = await CommandRun([
            command, "--data", folder.path, "--listen", "127.0.0.1:0", "--admin-listen", "192.0.2.1:7360", "--insecure",
        ])
        #expect(elsewhere.code == .usage, "\(elsewhere)")
        #expect(elsewhere.errors.contains("--admin-listen: listening on 192.0.2.1:7360: no interface"), "\(elsewhere)")
        #expect(elsewhere.errors.contains("expected is one that `ip address` lists"), "\(elsewhere)")
        let useless = await CommandRun([command, "--jwks", try write("{}", "useless")])
        #expect(useless.code == .badData && useless.errors.contains("/useless"), "\(useless)")
        let half = await CommandRun([command, "--tls-key", "x"])
        #expect(half.code == .usage)
        let wrong = await CommandRun([
            command, "--tls-key", folder.path + "/k", "--tls-cert", folder.path + "/c",
        ])
        #expect(wrong.errors.contains("certificate file \(folder.path)/c cannot be read"), "\(wrong.errors)")
    }
}
