import Foundation
import ReelLab
import Testing

@testable import reel

/// The demo as `make demo` runs it.
@Suite(.timeLimit(.minutes(5))) struct DemoTests {
    @Test func theDemoTellsItsStoryToTheEnd() async throws {
        let run = try await BuiltProgram.run(["demo"])
        #expect(run.code == 0, "\(run)")
        #expect(!run.output.contains("WRONG"), "\(run)")
        #expect(run.output.contains("All held"), "\(run)")
    }

    @Test func aDemoThatIsInterruptedLeavesNothingBehind() async throws {
        let parent = try TemporaryFolder(prefix: "reel-demo-test-")
        let process = try ChildProcess("/usr/bin/env", ["TMPDIR=\(parent.path)", BuiltProgram.path, "demo"])
        let pids = try pids(of: process)
        while let line = try process.readLine(timeoutMs: 60_000), !line.contains("The light switch") {}
        process.signal(SIGINT)
        #expect(process.wait(timeoutMs: 60_000) == .exited(1))
        try await eventually("its nodes have ended", seconds: 60) { pids.allSatisfy { kill($0, 0) != 0 } }
        #expect(try FileManager.default.contentsOfDirectory(atPath: parent.path) == [])
    }

    @Test func aProcessThatIsKilledTakesItsChildrenAndFoldersWithIt() async throws {
        let parent = try TemporaryFolder(prefix: "reel-demo-test-")
        let process = try ChildProcess("/usr/bin/env", ["TMPDIR=\(parent.path)", BuiltProgram.path, "demo"])
        let pids = try self.pids(of: process)
        process.killNow()
        try await eventually("its nodes have ended") { pids.allSatisfy { kill($0, 0) != 0 } }
        try await eventually("its folders are gone") {
            try FileManager.default.contentsOfDirectory(atPath: parent.path) == []
        }
    }

    /// The process ids that a demo prints at its start.
    private func pids(of demo: ChildProcess) throws -> [Int32] {
        var pids: [Int32] = []
        while pids.count < 3, let line = try demo.readLine(timeoutMs: 60_000) {
            let words = line.split(separator: " ")
            if words.count == 4, words[2] == "pid", let pid = Int32(words[3]) { pids.append(pid) }
        }
        #expect(pids.count == 3)
        return pids
    }
}
