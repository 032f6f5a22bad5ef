import Foundation
import ReelCore
import ReelLab
import ReelNet
import TestSupport
import Testing

@testable import ReelTool

/// Tests `reel doctor` on running nodes and their own answers.
@Suite struct DoctorCommandTests {
    private let site = "6f1c3a0e-8d0b-4a53-9a3e-2f1f5c1f7b11"

    private func publish(_ ops: [Int], to node: NodeProcess) async throws {
        for op in ops {
            let event = #"{"type":"insert","model":"task","id":"\#(op)","site":"\#(site)","op":\#(op)}"#
            try await eventually("op \(op) is taken") {
                // With the outcome a gap would be an error, and the node would already report it to the device.
                let body = #"{"events":[\#(event)]}"#
                guard let answer = try? await node.ask("POST", "/v1/streams/todo/events?outcome=0", body: body) else {
                    return false
                }
                try #require([200, 503].contains(answer.status), "\(String(decoding: answer.body, as: UTF8.self))")
                return answer.status == 200
            }
        }
    }

    /// Returns the findings once they and the exit code are as expected. The doctor looks at one moment, at which a
    /// node may be behind, or slower than the doctor waits.
    @discardableResult
    private func findings(
        _ words: [String],
        code: Int32,
        until isThere: ([Finding]) -> Bool
    ) async throws -> [Finding] {
        var last = "nothing"
        var found: [Finding] = []
        do {
            try await eventually("what the doctor finds") {
                let run = try await look(words)
                (last, found) = ("exit code \(run.code), \(run.findings)", run.findings)
                return run.code == code && isThere(found)
            }
        } catch {
            throw NeverCame(description: "\(error); at last it was \(last)")
        }
        return found
    }

    /// Returns the findings and the exit code of one run.
    private func look(_ words: [String]) async throws -> (code: Int32, findings: [Finding]) {
        let run = try await BuiltProgram.run(["doctor", "--json"] + words)
        let findings = try run.output.split(separator: "\n").map { line in
            let members = try JSONDecoder().decode([String: String].self, from: Data(line.utf8))
            let level = try #require(Finding.Level(rawValue: members["level"] ?? ""), "\(run)")
            return Finding(level, members["about"] ?? "", members["finding"] ?? "", do: members["do"])
        }
        return (run.code, findings)
    }

    @Test("the doctor reports an op that a device has left out") func reportsMissingOp() async throws {
        let folder = try TemporaryFolder(prefix: "reel-doctor-")
        let node = try NodeProcess.serve(in: folder)
        try await publish([0, 1, 5], to: node)
        let words = ["--url", node.url, "--stream", "todo", "--site", site]
        let found = try await findings(words, code: 1) {
            $0.contains { $0.about == "site" && $0.level == .problem && $0.text.hasPrefix("op 5 is at seq 2") }
        }
        #expect(
            found.contains {
                $0.text == "op 5 is at seq 2 and was not consumed: op 2 is missing before it"
                    && $0.advice?.hasPrefix("The device sends its events again from op 2.") == true
            },
            "\(found)"
        )
        #expect(
            found.contains { $0.level == .ok && $0.text.hasPrefix("op 1 is the last consumed, at seq 1") },
            "\(found)"
        )

        try await publish([2, 3], to: node)
        try await findings(words, code: 0) { $0.contains { $0.text.hasPrefix("op 3 is the last") } }

        // In the next epoch the log begins after the state, so the doctor asks from there.
        func epoch() async throws -> Substring? {
            let head = String(decoding: try await node.ask("GET", "/v1/streams/todo/head").body, as: UTF8.self)
            return head.firstMatch(of: /"epoch":"([0-9a-f]{16})"/)?.1
        }
        let old = try await epoch()
        let new = try await BuiltProgram.newEpoch(["--data", folder.path + "/data"])
        #expect(new.code == 0, "\(new)")
        try await eventually("the node has gone over") {
            let now = try? await epoch()
            return now != nil && now != old
        }
        try await publish([9], to: node)
        try await findings(words, code: 1) { $0.contains { $0.text.hasPrefix("op 9 is at seq") } }
    }

    @Test("the doctor reports an unknown device as a problem") func reportsUnknownDevice() async throws {
        let folder = try TemporaryFolder(prefix: "reel-doctor-")
        let node = try NodeProcess.serve(in: folder)
        try await publish([0], to: node)
        let other = "00000000-0000-4000-8000-000000000001"
        let found = try await findings(["--url", node.url, "--stream", "todo", "--site", other], code: 1) {
            $0.contains { $0.text.contains("1 event of 1 site consumed") }
        }
        #expect(found.contains { $0.text.hasPrefix("no event of \(other) was consumed") }, "\(found)")
    }

    @Test("the doctor reports a stream without events as a problem") func reportsUnwrittenStream() async throws {
        let folder = try TemporaryFolder(prefix: "reel-doctor-")
        let node = try NodeProcess.serve(in: folder)
        try await publish([0], to: node)
        try await findings(["--url", node.url, "--stream", "todo"], code: 0) {
            $0.contains { $0.text.contains("1 event of 1 site consumed") }
        }
        try await findings(["--url", node.url, "--stream", "nosuch"], code: 1) {
            $0.contains { $0.level == .problem && $0.text.hasPrefix("nosuch has no events: ") }
        }
    }

    @Test("a node that hangs is named by the log alone") func aNodeThatHangs() async throws {
        let folder = try TemporaryFolder(prefix: "reel-doctor-")
        let nodes = [try NodeProcess.gateway(in: folder), try NodeProcess.snapshot(in: folder)]
        let words = ["--log", "sqlite:\(folder.path)/log.sqlite"]
        // The doctor does not ask a node whose announcement is old. So the node continues between the attempts.
        try await eventually("the one that hangs is named") {
            try await findings(words, code: 0) {
                $0.contains { $0.text.contains("1 gateway and 1 snapshot node answer") }
            }
            nodes[1].process.pause()
            defer { nodes[1].process.resume() }
            let hung = try await look(words)
            return hung.code == 1
                && hung.findings.contains { $0.text.hasPrefix("snapshot \(nodes[1].url) does not answer: ") }
                && hung.findings.contains { $0.text.hasPrefix("no snapshot node answers") }
        }
    }

    @Test("the doctor does not report a drained gateway as missing") func ignoresDrainedGateway() async throws {
        let folder = try TemporaryFolder(prefix: "reel-doctor-")
        let nodes = [
            try NodeProcess.gateway(in: folder), try NodeProcess.snapshot(in: folder),
            try NodeProcess.gateway("leaving", in: folder),
        ]
        let words = ["--log", "sqlite:\(folder.path)/log.sqlite"]
        // A log that is locked for long does not get the node's last announcement. The node then starts again.
        try await eventually("nobody misses it") {
            try nodes[2].restart()
            try await findings(words, code: 0) {
                $0.contains { $0.text.contains("2 gateways and 1 snapshot node answer") }
            }
            nodes[2].process.signal(SIGTERM)
            try await eventually("its end") { nodes[2].process.hasEnded() }
            let after = try await look(words)
            let cluster = try await BuiltProgram.run(["cluster"] + words).output.split(separator: "\n")
            return after.code == 0
                && after.findings.contains { $0.level == .note && $0.text.hasPrefix("gateway \(nodes[2].url) (left ") }
                && !after.findings.contains { $0.text.contains("does not answer") }
                && cluster.contains { $0.contains(nodes[2].url) && $0.contains("  left ") }
        }
    }

    @Test("two snapshot nodes are proven to hold the same") func twoSnapshotNodesAre() async throws {
        let folder = try TemporaryFolder(prefix: "reel-doctor-")
        let gateway = try NodeProcess.gateway(in: folder)
        let snapshots = [
            try NodeProcess.snapshot("a", in: folder), try NodeProcess.snapshot("b", in: folder),
        ]
        try await publish([0, 1, 2], to: gateway)
        for snapshot in snapshots { _ = try await snapshot.snapshot(of: "todo", upTo: 2) }
        try await findings(["--log", "sqlite:\(folder.path)/log.sqlite", "--stream", "todo"], code: 0) {
            $0.contains { $0.text.hasSuffix("3 events of 1 site consumed; all 2 snapshot nodes agree") }
        }
    }

    @Test("a node that wants a token is not taken for one that is alone") func aNodeThatWants() async throws {
        let folder = try TemporaryFolder(prefix: "reel-doctor-")
        let keys = folder.path + "/keys"
        let made = try await BuiltProgram.run(["token", "keygen"])
        try made.output.write(toFile: keys, atomically: true, encoding: .utf8)
        let log = "sqlite:\(folder.path)/log.sqlite"
        let gateway = try NodeProcess(["gateway", "--log", log, "--jwks", keys], in: folder)
        let state = ["snapshot", "--log", log, "--data", folder.path + "/state", "--jwks", keys]
        let snapshot = try NodeProcess(state, in: folder, name: "snapshot")
        for words in [[], ["--token", "wrong"]] {
            let found = try await findings(["--url", gateway.url] + words, code: 1) {
                $0.contains { $0.level == .problem && $0.text.hasSuffix("(unauthorized)") }
            }
            let problems = found.filter { $0.level == .problem }
            #expect(problems.map(\.advice) == ["Give a valid token with --token or REEL_TOKEN."], "\(found)")
            #expect(problems.first?.text.hasSuffix("(unauthorized)") == true, "\(found)")
            #expect(!found.contains { $0.text.contains("snapshot node") }, "\(found)")
        }
        func token(_ rights: String...) async throws -> String {
            let words = ["token", "issue", "--jwks", keys, "--sub", "ann", "--for", "3600"] + rights
            return try await BuiltProgram.run(words).output.trimmingCharacters(in: .newlines)
        }
        try await findings(["--url", gateway.url, "--token", token("--read", "*")], code: 1) {
            $0.contains { $0.level == .problem && $0.text.contains("the right `admin`") }
        }
        let token = try await token("--admin", "*")
        try await findings(["--url", gateway.url, "--token", token], code: 0) {
            $0.contains { $0.text.contains("1 gateway and 1 snapshot node answer") }
        }
        snapshot.process.killNow()
    }

    @Test("the doctor exits with code 3 when no node answers") func unreachableExitCode() async throws {
        let run = try await BuiltProgram.run(["doctor", "--url", "http://127.0.0.1:1"])
        #expect(run.code == 3)
        #expect(run.output.hasPrefix("problem  nodes   http://127.0.0.1:1 does not answer: "), "\(run)")
    }

    @Test("ready waits for nodes and names a node that is not ready") func waitsForNodes() async throws {
        let folder = try TemporaryFolder(prefix: "reel-ready-")
        let node = try NodeProcess.gateway(in: folder)
        let well = try await BuiltProgram.run(["ready", "--wait", "100", "--url", node.url])
        #expect(well.code == 0 && well.output == "\(node.url): ready\n", "\(well)")
        let dead = try await BuiltProgram.run(["ready", "--url", node.url, "--url", "http://127.0.0.1:1"])
        #expect(dead.code == 3 && dead.output.contains("http://127.0.0.1:1: no answer: "), "\(dead)")
    }
}
