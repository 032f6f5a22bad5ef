import Foundation
import ReelLab
import TestSupport
import Testing

@testable import ReelTool

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

    @Test("a wrong end fails and shows where the texts first differ", arguments: [[], ["--devices"]])
    func showsFirstDifference(words: [String]) async throws {
        let json = #"{"endContent":"abXd","txns":[{"patches":[[0,0,"ab"]]},{"patches":[[2,0,"cd"]]}]}"#
        let run = try await replay(json, words)
        #expect(run.code == .failed)
        #expect(run.output.contains("the final text is WRONG"), "\(run.output)")
        let expected = #"first differ after 2 scalars: found "cd", expected "Xd" (4 scalars, expected 4)"#
        #expect(run.output.contains(expected), "\(run.output)")
    }

    @Test("an edit beyond the text is named") func namesRefusedEdit() async throws {
        let json = #"{"endContent":"ab","txns":[{"patches":[[0,0,"ab"]]},{"patches":[[3,0,"c"]]}]}"#
        let fold = try await replay(json.replacing(#""ab","txns"#, with: #""abc","txns"#))
        #expect(fold.code == .failed)
        #expect(fold.output.contains("edit 1 is rejected(range)"), "\(fold.output)")
        let devices = try await replay(json, ["--devices"])
        #expect(devices.code == .failed)
        #expect(devices.errors.contains("edit 1 of author 0 is refused"), "\(devices.errors)")
    }

    @Test("replay reports an invalid session as bad data") func reportsInvalidSession() async throws {
        let run = try await replay("{}")
        #expect(run.code == .badData)
        #expect(run.errors.contains("endContent"))
    }

    @Test("cuts need devices") func cutsNeedDevices() async throws {
        let run = try await replay(#"{"endContent":"","txns":[]}"#, ["--cuts", "1"])
        #expect(run.code == .usage)
        #expect(run.errors.contains("add --devices"), "\(run.errors)")
    }

    @Test("a session without edits ends as it began", arguments: [[], ["--devices", "--cuts", "2"]])
    func replaysNoEdits(words: [String]) async throws {
        let run = try await replay(#"{"startContent":"a","endContent":"a","txns":[]}"#, words)
        #expect(run.code == .done, "\(run.output) \(run.errors)")
    }

    @Test("sessions of any number of authors end with their text", arguments: [1, 2, 3, 5])
    func endsWithText(authors: Int) async throws {
        let seed = TestSeed.given(or: UInt64(authors))
        let recorded = RecordedAuthors(authors: authors, edits: 120, seed: seed)
        let json = String(decoding: recorded.file, as: UTF8.self)
        for words in [[], ["--devices"], ["--devices", "--cuts", "12", "--seed", "\(seed)"]] {
            let run = try await replay(json, words + ["--json"])
            #expect(run.code == .done, "seed \(seed), \(words): \(run.output) \(run.errors)")
            #expect(run.output.contains(#""authors":\#(authors),"edits":120,"#), "\(run.output)")
        }
    }

    @Test("three authors on a node end with their text", .timeLimit(.minutes(10)))
    func endsWithTextOnNode() async throws {
        let folder = try TemporaryFolder(prefix: "reel-session-")
        let node = try NodeProcess.serve(in: folder)
        let json = String(decoding: RecordedAuthors(authors: 3, edits: 80, seed: 3).file, as: UTF8.self)
        for words in [[], ["--devices"], ["--devices", "--cuts", "10", "--seed", "3"]] {
            let run = try await replay(json, words + ["--url", node.url])
            #expect(run.code == .done, "\(words): \(run.output) \(run.errors)")
        }
    }

    @Test("the cuts of a replay are made") func makesCuts() async throws {
        let recorded = RecordedAuthors(authors: 3, edits: 200, seed: 1)
        let json = String(decoding: recorded.file, as: UTF8.self)
        let run = try await replay(json, ["--devices", "--cuts", "8", "--seed", "1", "--json"])
        #expect(run.code == .done, "\(run.output) \(run.errors)")
        #expect(run.errors.contains("seed 1"))
        let cuts = run.output.firstMatch(of: /"cuts":([0-9]+)/).flatMap { Int($0.1) }
        #expect(try #require(cuts) > 0, "\(run.output)")
    }

    @Test("the recorded sessions end as their editors did") func theRecordedSessionsEnd() async throws {
        guard let traces else {
            return print("NOT TESTED: REEL_TRACES names no folder of recorded sessions; replays by the fold")
        }
        let files = try FileManager.default.contentsOfDirectory(atPath: traces).filter { $0.hasSuffix(".json.gz") }
        #expect(!files.isEmpty)
        let run = await CommandRun(["replay"] + files.map { "\(traces)/\($0)" })
        #expect(run.code == .done, "\(run.output)")
    }

    /// A device lays its own edits over the whole text, which takes minutes without optimization.
    @Test("recorded authors end with their text on devices that lose connections", .timeLimit(.minutes(30)))
    func theRecordedDevicesEnd() async throws {
        guard let traces, effort > 1 else {
            return print("NOT RUN: a recorded session by devices needs REEL_TRACES and a REEL_EFFORT above 1")
        }
        let run = await CommandRun([
            "replay", "\(traces)/friendsforever.json.gz", "--devices", "--cuts", "40", "--seed", "1",
        ])
        #expect(run.code == .done, "\(run.output) \(run.errors)")
    }
}

/// The folder of recorded sessions, if the environment names one.
private let traces = ProcessInfo.processInfo.environment["REEL_TRACES"].flatMap { $0.isEmpty ? nil : $0 }
