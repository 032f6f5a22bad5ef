import Foundation
import ReelLab
import TestSupport
import Testing

@testable import ReelTool

/// Tests the demo as `make demo` runs it.
@Suite(.timeLimit(.minutes(20))) struct DemoTests {
    @Test("the demo tells its story to the end") func theDemoTellsIts() async throws {
        var run = try await BuiltProgram.run(["demo"], seconds: 300)
        // A process was delayed for longer than the demo waits, so the run proves nothing.
        let signs = ["WRONG  the longest wait", "s in vain until"]
        for _ in 0..<3 where run.says(signs) {
            run = try await BuiltProgram.run(["demo"], seconds: 300)
        }
        #expect(run.code == 0, "\(run)")
        #expect(!run.output.contains("WRONG"), "\(run)")
        #expect(run.output.contains("All held"), "\(run)")
        #expect(!run.output.contains(/(light|todo|note|clip|total)-\d/), "a name that nobody would understand")
    }

    @Test("demo reports too few file descriptors at the start") func reportsFewDescriptors() async throws {
        try await BuiltProgram.complains(["demo"], .failed, "allow more with `ulimit -n 128`", shell: "ulimit -n 64;")
    }

    @Test("an interrupted demo leaves no processes and no files") func interruptedDemoCleansUp() async throws {
        let parent = try TemporaryFolder(prefix: "reel-demo-test-")
        var (pids, end): ([Int32], ChildProcess.End?) = ([], nil)
        // If the signal came after the end of the demo, the test interrupts another run.
        for _ in 0..<5 where pids.isEmpty || end == .exited(0) {
            let process = try ChildProcess("/usr/bin/env", ["TMPDIR=\(parent.path)", BuiltProgram.path, "demo"])
            pids = try self.pids(of: process)
            while let line = try process.readLine(timeoutMs: 100_000), !line.contains("The light switch") {}
            process.signal(SIGINT)
            end = process.wait(timeoutMs: 100_000)
        }
        #expect(end == .exited(1))
        try await eventually("its nodes have ended", seconds: 60) { pids.allSatisfy { kill($0, 0) != 0 } }
        #expect(try FileManager.default.contentsOfDirectory(atPath: parent.path) == [])
    }

    @Test("a process that is killed takes its children and folders with it") func aProcessThatIs() async throws {
        let parent = try TemporaryFolder(prefix: "reel-demo-test-")
        let process = try ChildProcess("/usr/bin/env", ["TMPDIR=\(parent.path)", BuiltProgram.path, "demo"])
        let pids = try self.pids(of: process)
        process.killNow()
        try await eventually("its nodes have ended") { pids.allSatisfy { kill($0, 0) != 0 } }
        try await eventually("its folders are gone") {
            try FileManager.default.contentsOfDirectory(atPath: parent.path) == []
        }
    }

    /// Returns the process ids that a demo prints at its start.
    private func pids(of demo: ChildProcess) throws -> [Int32] {
        var pids: [Int32] = []
        while pids.count < 3, let line = try demo.readLine(timeoutMs: 100_000) {
            let words = line.split(separator: " ")
            if words.count == 4, words[2] == "pid", let pid = Int32(words[3]) { pids.append(pid) }
        }
        #expect(pids.count == 3)
        return pids
    }
}
