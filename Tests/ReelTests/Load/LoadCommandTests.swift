import Foundation
import ReelLab
import Testing

@testable import reel

/// `reel load` against real nodes, and `reel check` on what it wrote.
@Suite struct LoadCommandTests {
    private let folder: TemporaryFolder
    private let gateways: [LocalNode]
    private let snapshot: LocalNode

    init() throws {
        folder = try TemporaryFolder(prefix: "reel-load-")
        let common = ["--log", "sqlite:\(folder.path)/log.sqlite", "--partitions", "3"]
        gateways = try ["a", "b"].map { [folder] name in
            try LocalNode(name: name, reel: BuiltProgram.path, arguments: ["gateway"] + common, folder: folder.path)
        }
        snapshot = try LocalNode(
            name: "snapshot",
            reel: BuiltProgram.path,
            arguments: ["snapshot", "--data", folder.path + "/snapshot"] + common,
            folder: folder.path
        )
    }

    private var run: String { folder.path + "/run" }

    private func words(_ more: [String]) -> [String] {
        ["load", "--seconds", "3", "--rate", "100"] + gateways.flatMap { ["--url", $0.url] } + more
    }

    private func load(_ more: String...) async throws -> BuiltProgram.Run {
        try await BuiltProgram.run(words(more))
    }

    private func dump() async throws {
        let dumped = try await BuiltProgram.run(["dump", "--log", "sqlite:\(folder.path)/log.sqlite"])
        try dumped.output.write(toFile: run + "/log.jsonl", atomically: false, encoding: .utf8)
    }

    @Test func aGatewayIsKilledUnderLoadAndTheJudgeFindsNothing() async throws {
        let words = words(["--streams", "2", "--publishers", "4", "--readers", "6", "--history", run])
        async let loaded = BuiltProgram.run(words)
        try await eventually("the load runs") { try histories().contains { $0.contains(#""e":"ack""#) } }
        gateways[0].process.killNow()
        let report = try await loaded
        #expect(report.code == 0, "\(report)")
        try await dump()
        let verdict = try await BuiltProgram.run(["check", run])
        #expect(verdict.code == 0 && verdict.output.hasPrefix("verdict: valid"), "\(verdict)")
        #expect(verdict.output.contains("a snapshot is the fold                    holds"), "\(verdict)")

        // The same with one record gone from the dump.
        let lines = try String(contentsOfFile: run + "/log.jsonl", encoding: .utf8).split(separator: "\n")
        let rest = lines.dropFirst(7).joined(separator: "\n") + "\n"
        try (lines.prefix(6).joined(separator: "\n") + "\n" + rest)
            .write(toFile: run + "/log.jsonl", atomically: false, encoding: .utf8)
        let broken = try await BuiltProgram.run(["check", run])
        #expect(broken.code == 4 && broken.output.contains("VIOLATED"), "\(broken)")
        try FileManager.default.removeItem(atPath: run + "/log.jsonl")
        let unknown = try await BuiltProgram.run(["check", run])
        #expect(unknown.code == 5 && unknown.output.contains("there is no dump of the log"), "\(unknown)")
    }

    private func histories() throws -> [String] {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: run)) ?? []
        return try names.map { try String(contentsOfFile: "\(run)/\($0)", encoding: .utf8) }
    }

    @Test func allKindsOfClientsAtOnceComeToTheirEnd() async throws {
        let report = try await load(
            "--publishers",
            "3",
            "--sleepers",
            "2",
            "--readers",
            "4",
            "--editors",
            "3",
            "--coldstarts",
            "4",
            "--storm",
            "1",
            "--history",
            run,
            "--html",
            folder.path + "/report.html",
            "--expect",
            "acked>=250"
        )
        #expect(report.code == 0, "\(report)")
        #expect(report.output.contains("cold start p50") && report.output.contains("acked>=250: reached"), "\(report)")
        try await dump()
        let verdict = try await BuiltProgram.run(["check", run])
        #expect(verdict.code == 0, "\(verdict)")
        let page = try String(contentsOfFile: folder.path + "/report.html", encoding: .utf8)
        #expect(page.contains("<svg") && page.contains("as expected"))
    }

    @Test func anExpectationThatIsMissedIsAFailure() async throws {
        let report = try await load("--expect", "p50<1us", "--json")
        #expect(report.code == 1, "\(report)")
        #expect(report.output.hasPrefix(#"{"complete":true"#), "\(report)")
    }

    @Test func halfOfTheGatewaysMayBeDead() async throws {
        let report = try await load("--url", "http://127.0.0.1:1")
        #expect(report.code == 0, "\(report)")
    }

    @Test func whatCannotBeMeantIsSaidBeforeAnythingIsDone() async throws {
        let nobody = try await BuiltProgram.run(["load", "--url", "http://127.0.0.1:1"])
        #expect(nobody.code == 3 && nobody.errors.contains("http://127.0.0.1:1"), "\(nobody)")
        let long = String(repeating: "x", count: 127)
        for (words, complaint) in [
            (["--expect", "p99<soon"], "`soon` is no time"),
            (["--expect", "speed>1"], "`speed` is nothing that is measured"),
            (["--stream", "~x"], "`~x` is no name of a stream; expected are"),
            (["--stream", long, "--streams", "20"], "too long for a name"),
            (["--profile", "nothing"], "no file, and no profile"),
            (["--profile", "fanuot"], "did you mean `fanout`?"), (["--rate", "0"], "from 1 to"),
            (["--url", "ftp://x:1"], "`ftp://x:1` is no address of a node"),
        ] {
            let run = try await BuiltProgram.run(["load", "--url", gateways[0].url] + words)
            #expect(run.code == 2 && run.errors.contains(complaint), "\(run)")
        }
        let few = try await BuiltProgram.run(
            ["load", "--url", gateways[0].url, "--readers", "500"],
            shell: "ulimit -n 200;"
        )
        #expect(few.code == 1 && few.errors.contains("ulimit -n 574"), "\(few)")
        try FileManager.default.createDirectory(atPath: run, withIntermediateDirectories: false)
        let empty = try await BuiltProgram.run(["check", run])
        #expect(empty.code == 4 && empty.errors.contains("no history"), "\(empty)")
        try "x".write(toFile: run + "/a.history.jsonl", atomically: false, encoding: .utf8)
        let twice = try await load("--history", run)
        #expect(twice.code == 1 && twice.errors.contains("of another run"), "\(twice)")
    }
}
