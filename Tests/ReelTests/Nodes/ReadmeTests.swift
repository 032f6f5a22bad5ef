import Foundation
import NodeTestSupport
import ReelLab
import TestSupport
import Testing

@testable import ReelTool

/// Tests that the commands shown in README.md work.
@Suite(.timeLimit(.minutes(5))) struct ReadmeTests {
    /// Returns the lines of the shell blocks in a section of README.md.
    private func commands(in section: String) throws -> [String] {
        let file = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../../../README.md")
        let lines = try String(contentsOf: file, encoding: .utf8).split(
            separator: "\n",
            omittingEmptySubsequences: false
        )
        var (isInSection, isInBlock, commands) = (false, false, [String]())
        for line in lines {
            if isInBlock {
                if line == "```" { isInBlock = false } else { commands.append(String(line)) }
            } else if line.hasPrefix("## ") {
                isInSection = line == "## \(section)"
            } else if isInSection, line == "```sh" {
                isInBlock = true
            }
        }
        return commands
    }

    /// Returns true if the tail connected to the second node before the restart of the first one, which
    /// is the third node that listens.
    private func tailGoesOn(_ run: BuiltProgram.Run, with second: HeldPort) -> Bool {
        let starts = run.errors.ranges(of: "event=listening")
        guard starts.count == 3 else { return false }
        return run.errors[..<starts[2].lowerBound].contains("continuing with http://127.0.0.1:\(second.number)")
    }

    @Test("the commands of the README work as pasted, from the first to the last, with the kill in the middle")
    func commands() async throws {
        guard try await Shell.has("curl --version", "curl: apt-get install curl") else { return }
        let folder = try TemporaryFolder(prefix: "reel-readme-")
        let (first, second) = (try HeldPort(), try HeldPort())
        // Only the ports and the origin of the program differ from the README.
        let lines = try commands(in: "Try it").filter { !$0.hasPrefix("make ") }.map {
            $0.replacing("127.0.0.1:7350", with: "127.0.0.1:\(first.number)")
                .replacing("127.0.0.1:7351", with: "127.0.0.1:\(second.number)")
                .replacing("swift run example-todo", with: "example-todo")
        }
        #expect(lines.contains { $0.hasPrefix("kill -9 $first ") } && lines.contains { $0.hasPrefix("curl ") })
        let settings = [
            "cd '\(folder.path)'",
            "export PATH='\(URL(filePath: BuiltProgram.path).deletingLastPathComponent().path)':$PATH",
            "export REEL_LISTEN=127.0.0.1:\(first.number) REEL_URL=http://127.0.0.1:\(first.number)",
        ]
        let script = folder.path + "/commands"
        try (settings + lines).joined(separator: "\n").write(toFile: script, atomically: true, encoding: .utf8)
        // After 100 s, `timeout` ends everything that the script has started.
        var run = try await Shell.run("timeout --kill-after 5 100 bash -e \"$0\"", [script])
        // On a busy machine the first node may be killed before the tail knows the second node.
        for _ in 0..<2 where run.code == 0 && !tailGoesOn(run, with: second) {
            run = try await Shell.run("timeout --kill-after 5 100 bash -e \"$0\"", [script])
        }
        #expect(run.code == 0, "\(run)")
        #expect(tailGoesOn(run, with: second), "\(run)")
        for text in ["Milk", "Bread", "Tea", "Buy milk"] {
            #expect(run.output.contains(text), "\(text) is missing: \(run)")
        }
        let left = try FileManager.default.contentsOfDirectory(atPath: folder.path)
        #expect(left == ["commands"], "all that was kept is removed")
    }
}
