import Foundation
import ReelCore
import ReelLab
import ReelNet
import TestSupport
import Testing

@testable import ReelTool

/// Tests that sites are listed and retired while nodes run.
@Suite(.timeLimit(.minutes(5))) struct SiteRetirementTests {
    private func text(_ answer: HTTPResponse) -> String { String(decoding: answer.body, as: UTF8.self) }

    private func folded(_ node: NodeProcess, to seq: Seq) async throws {
        try await eventually("\(node.name) has folded seq \(seq)") {
            guard let answer = try? await node.ask("GET", "/readyz"), answer.status == 200 else { return false }
            let folded = text(answer).components(separatedBy: #""role":"snapshot""#).last ?? ""
            return folded.contains(#""partition":0,"ready":true,"seq":\#(seq),"#)
        }
    }

    @Test("a site that writes while sites are retired is not touched, and an idle one ends on all nodes")
    func withKeys() async throws {
        let folder = try TemporaryFolder(prefix: "reel-sites-")
        let (secret, half) = (folder.path + "/keys.json", folder.path + "/public.json")
        try await output(["token", "keygen"]).write(toFile: secret, atomically: true, encoding: .utf8)
        try await output(["token", "keygen", "--public", secret]).write(toFile: half, atomically: true, encoding: .utf8)
        func token(_ words: String...) async throws -> String {
            let made = try await output(["token", "issue", "--jwks", secret, "--sub", "ann"] + words)
            return made.trimmingCharacters(in: .whitespacesAndNewlines)
        }
        let path = folder.path + "/log.sqlite"
        let sites = SiteLog(path)
        try await sites.append((0..<5).map { SiteLog.event(site: $0, op: 0, base: Seq($0) - 1) })
        let words = ["serve", "--log", "sqlite:\(path)", "--data", folder.path + "/serve", "--jwks", half]
        let node = try NodeProcess(words, in: folder, name: "serve")
        try await folded(node, to: 4)

        let place = ["todo", "--url", node.url]
        let reader = try await token("--read", "*", "--publish", "*", "--admin", "*")
        for words in [[], ["--token", reader]] {
            let run = try await BuiltProgram.run(["site", "list"] + place + words)
            #expect(run.code == ExitCode.failed.rawValue, "\(run)")
            #expect(run.errors.contains(words.isEmpty ? "unauthorized" : "the right `inspect`"), "\(run)")
        }
        let inspector = try await token("--inspect", "todo")
        let listed = try await BuiltProgram.run(["site", "list"] + place + ["--token", inspector, "--json"])
        #expect(listed.code == 0 && listed.output.split(separator: "\n").count == 5, "\(listed)")

        // The node may not have folded this event yet when the command reads the sites.
        let retire = ["site", "retire"] + place + ["--idle-events", "2", "--log", "sqlite:\(path)"]
        let refused = try await BuiltProgram.run(retire + ["--token", reader])
        #expect(refused.code == ExitCode.failed.rawValue && refused.errors.contains("`inspect`"), "\(refused)")
        try await sites.append([SiteLog.event(site: 0, op: 1, base: 4)])
        let run = try await BuiltProgram.run(retire + ["--token", inspector])
        #expect(run.code == 0, "\(run)")
        #expect(run.errors.contains(#"event="operator command" command="site retire" user="#), "\(run)")
        try await sites.append([SiteLog.event(site: 0, op: 2, base: 5)])
        try await folded(node, to: 7)
        let after = try await BuiltProgram.run(["site", "list"] + place + ["--token", inspector, "--json"])
        #expect(after.output.contains(#""site":"\#(SiteLog.site(0))","by":"u0","op":2"#), "\(after)")
        let own = try await BuiltProgram.run(["site", "list", "todo", "--log", "sqlite:\(path)", "--json"])
        #expect(seqs(own) == seqs(after), "the log and the node say the same: \(own), \(after)")

        let elsewhere = SiteLog(folder.path + "/elsewhere.sqlite")
        try await elsewhere.append([SiteLog.event(site: 0, op: 0, base: -1)])
        let mixed = ["site", "retire"] + place + ["--idle-events", "2", "--log", "sqlite:\(elsewhere.path)"]
        let wrong = try await BuiltProgram.run(mixed + ["--token", inspector])
        #expect(
            wrong.code == ExitCode.badData.rawValue && wrong.errors.contains("found a node of the log "),
            "\(wrong)"
        )
        #expect(try elsewhere.last == 0)
    }

    @Test("a node stops before a retire barrier with an unknown member and reports that it needs a newer version")
    func unknownRetireBarrier() async throws {
        let folder = try TemporaryFolder(prefix: "reel-sites-")
        let path = folder.path + "/log.sqlite"
        let sites = SiteLog(path)
        try await sites.append((0..<5).map { SiteLog.event(site: $0, op: 0, base: Seq($0) - 1) })
        let nodes = [try NodeProcess.gateway("gateway", in: folder), try NodeProcess.snapshot("snapshot", in: folder)]
        for node in nodes { try await node.becomesReady() }
        let value = #"{"retire":{"before":2,"more":1,"stream":"todo"},"type":"barrier"}"#
        try await sites.append([value], key: "~reel")
        try await sites.append([SiteLog.event(site: 9, op: 0, base: 4)])
        for node in nodes {
            try await eventually("\(node.name) says why it stops") {
                guard let answer = try? await node.ask("GET", "/readyz") else { return false }
                return text(answer).contains("found a barrier at seq 5 that this version does not know")
            }
            #expect(
                node.logger.contains("found a barrier at seq 5 that this version does not know"),
                "\(node.logger)"
            )
        }
        // A client that names a bound gets the state before the barrier. Other clients would get a
        // state that becomes ever older.
        let unbounded = try await nodes[1].ask("GET", "/v1/streams/todo/snapshot")
        #expect(unbounded.status == 503 && text(unbounded).contains("folding has stopped: internal"), "\(unbounded)")
        let epoch = try #require(try await nodes[1].members("/v1/cluster")["epoch"] as? String)
        let bounded = try await nodes[1].ask("GET", "/v1/streams/todo/snapshot?epoch=\(epoch)&min_seq=4")
        #expect(bounded.status == 200 && text(bounded).contains(#""seq":4,"#), "\(text(bounded))")
    }

    private func output(_ words: [String]) async throws -> String {
        let run = await CommandRun(words)
        #expect(run.code == .done, "\(run.errors)")
        return run.output
    }

    /// Returns the seqs of the listed sites.
    private func seqs(_ run: BuiltProgram.Run) -> [Substring] {
        run.output.matches(of: /"seq":([0-9]+)/).map { $0.1 }
    }
}
