import Foundation
import ReelLab
import Testing

@testable import reel

/// Tests that `reel replay` reports whether a session's text ends as it was recorded.
@Suite struct ReplayCommandTests {
    private func replay(_ json: String, _ words: [String] = []) async throws -> CommandRun {
        let folder = try TemporaryFolder(prefix: "reel-cli-")
        let file = folder.path + "/session.json"
        try Data(json.utf8).write(to: URL(filePath: file))
        let run = await CommandRun(["replay", file] + words)
        withExtendedLifetime(folder) {}
        return run
    }

    @Test("replay keeps the words of two concurrent authors whole") func keepsWordsWhole() async throws {
        let edits = [(0, "[]", 0, "a"), (1, "[]", 0, "x"), (0, "[0]", 1, "b"), (1, "[1]", 1, "y")].map {
            #"{"agent":\#($0.0),"parents":\#($0.1),"patches":[[\#($0.2),0,"\#($0.3)"]]}"#
        }
        let run = try await replay(#"{"endContent":"xyab","txns":[\#(edits.joined(separator: ","))]}"#, ["--json"])
        #expect(run.code == .done, "\(run.output)")
        #expect(run.output.contains(#""edits":4,"splices":4,"#))
        #expect(run.output.contains(#""right":true"#))
    }

    @Test("a wrong end fails") func aWrongEndFails() async throws {
        let run = try await replay(#"{"endContent":"b","txns":[{"patches":[[0,0,"a"]]}]}"#)
        #expect(run.code == .failed)
        #expect(run.output.contains("the final text is WRONG"))
    }

    @Test("replay reports an invalid session as bad data") func reportsInvalidSession() async throws {
        let run = try await replay("{}")
        #expect(run.code == .badData)
        #expect(run.errors.contains("endContent"))
    }

    @Test(
        "the recorded sessions end as their editors did",
        .enabled(if: traces != nil, "REEL_TRACES names no folder of recorded sessions")
    )
    func theRecordedSessionsEnd() async throws {
        let folder = try #require(traces)
        let files = try FileManager.default.contentsOfDirectory(atPath: folder).filter { $0.hasSuffix(".json.gz") }
        #expect(!files.isEmpty)
        let run = await CommandRun(["replay"] + files.map { "\(folder)/\($0)" })
        #expect(run.code == .done, "\(run.output)")
    }
}

/// The folder of recorded sessions, if the environment names one.
private let traces = ProcessInfo.processInfo.environment["REEL_TRACES"]
