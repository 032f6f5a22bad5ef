import Foundation
import ReelCore
import ReelLab
import ReelLog
import ReelNet
import TestSupport
import Testing

@testable import ReelTool

/// Tests two authors who type into one text through two gateways, one of which is killed.
@Suite(.timeLimit(.minutes(20))) struct RecordedSessionTests {
    private static let traces = ProcessInfo.processInfo.environment["REEL_TRACES"].flatMap { $0.isEmpty ? nil : $0 }

    @Test(
        "two authors end with their text though a gateway is killed",
        .enabled(if: traces != nil, "REEL_TRACES names no folder of recorded sessions")
    )
    func twoAuthorsEndWith() async throws {
        let traces = try #require(Self.traces)
        let file = traces + "/friendsforever.json.gz"
        let session = try EditingSession(file: Array(Data(contentsOf: URL(filePath: file))))
        let folder = try TemporaryFolder(prefix: "reel-session-")
        let (one, two) = (try NodeProcess.gateway("one", in: folder), try NodeProcess.gateway("two", in: folder))
        let state = try NodeProcess.snapshot(in: folder)
        let log = try SQLiteLog(path: folder.path + "/log.sqlite")
        defer { log.close() }
        func length() throws -> Seq {
            try (0..<log.partitions).reduce(0) { try $0 + log.bounds($1).last + 1 }
        }

        let words = ["replay", file, "--url", one.url, "--url", two.url, "--json"]
        async let replay = BuiltProgram.run(words, seconds: 600)
        try await eventually("a third of the session", seconds: 100) { try length() > session.edits.count / 3 }
        one.process.killNow()
        let run = try await replay
        #expect(run.code == 0, "\(run)")
        #expect(run.output.contains(#""right":true"#), "\(run)")

        // The states of the remaining nodes must equal the fold of the log itself.
        let partition = try #require((0..<log.partitions).first { try log.bounds($0).last > 0 })
        let head = try log.read(partition, from: 0, to: 0, bytes: 1)
        let stream = head.withRecord(try #require(head.entries.first)) { key, _ in String(decoding: key, as: UTF8.self)
        }
        let last = try log.bounds(partition).last
        #expect(last >= session.edits.count)
        var digests: Set<String> = []
        for survivor in [two, state] {
            let snapshot = try SnapshotLines(try await survivor.snapshot(of: stream, upTo: last))
            digests.insert(snapshot.digest)
            let text = try snapshot.lines.compactMap { try ObjectLine($0) }.first?.fields.first?.value
            #expect(text.map { Array($0.utf8) } == session.endValue, "\(survivor.name)")
        }
        let folded = try await Shell.run(
            "set -o pipefail; \"$0\" dump --log \"sqlite:$1\" --stream \"$2\" | \"$0\" fold --stream \"$2\" | tail -n 1",
            [BuiltProgram.path, folder.path + "/log.sqlite", stream]
        )
        #expect(folded.code == 0, "\(folded)")
        #expect(digests.count == 1 && folded.output.contains(digests.first ?? "none"), "\(digests), \(folded.output)")
    }
}
