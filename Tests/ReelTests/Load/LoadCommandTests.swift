import Foundation
import NodeTestSupport
import ReelLab
import TestSupport
import Testing

@testable import ReelTool

/// Tests `reel load` on real nodes, and `reel check` on its files.
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
        ["load", "--seconds", "3", "--rate", "100", "--settle", "120"] + gateways.flatMap { ["--url", $0.url] } + more
    }

    private func load(_ more: String...) async throws -> BuiltProgram.Run {
        try await BuiltProgram.run(words(more), seconds: 300)
    }

    /// Runs a load that was not delayed. After a delay it repeats the load on a new cluster, whose log is empty.
    private func unhurried(
        _ load: (LoadCommandTests) async throws -> BuiltProgram.Run
    ) async throws -> (LoadCommandTests, BuiltProgram.Run) {
        var (tests, report) = (self, try await load(self))
        for _ in 0..<3 where Self.isHeldUp(report) {
            tests = try LoadCommandTests()
            report = try await load(tests)
        }
        return (tests, report)
    }

    /// True if a process was delayed for longer than the clients wait for a welcome or a
    /// state. Such a run proves nothing.
    static func isHeldUp(_ run: BuiltProgram.Run) -> Bool {
        let signs = ["cold starts did not come to their end", "no node had the folded state"]
        return run.code == 3 || run.says(signs + ["asked      0 of ", "asked      1 of 2"])
    }

    /// Waits until the gateways know the snapshot node. Without it they have no state to forward.
    private func becomesWhole() async throws {
        for gateway in gateways {
            try await eventually("\(gateway.name) knows the snapshot node") {
                await CommandRun(["cluster", "--url", gateway.url]).output.contains(snapshot.url + " ")
            }
        }
    }

    private func dump() async throws {
        let dumped = try await BuiltProgram.run(["dump", "--log", "sqlite:\(folder.path)/log.sqlite"])
        try dumped.output.write(toFile: run + "/log.jsonl", atomically: false, encoding: .utf8)
    }

    @Test("a gateway is killed under load and the judge finds nothing") func aGatewayIsKilledUnder() async throws {
        let (tests, report) = try await unhurried { try await $0.loadWithAKill() }
        #expect(report.code == 0, "\(report)")
        #expect(report.output.contains("stays in the log, in the streams load-0 and load-1"), "\(report)")
        try await tests.judge()
    }

    private func loadWithAKill() async throws -> BuiltProgram.Run {
        try await becomesWhole()
        let words = words(["--streams", "2", "--publishers", "4", "--readers", "6", "--history", run])
        async let loaded = BuiltProgram.run(words, seconds: 300)
        try await eventually("the load runs, or has failed") {
            histories().contains { $0.contains(#""e":"ack""#) || $0.contains(#""e":"end""#) }
        }
        gateways[0].process.killNow()
        return try await loaded
    }

    /// Checks that the checker accepts the run, and finds the fault after a record was removed.
    private func judge() async throws {
        try await dump()
        let verdict = try await BuiltProgram.run(["check", run])
        #expect(verdict.code == 0 && verdict.output.hasPrefix("verdict: valid"), "\(verdict)")
        #expect(verdict.output.contains("a snapshot is the fold                    holds"), "\(verdict)")
        #expect(Self.looksAtDigests(verdict), "\(verdict)")

        // One record is removed from the dump.
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

    /// True if the checker compared digests and found them equal.
    static func looksAtDigests(_ verdict: BuiltProgram.Run) -> Bool {
        verdict.output.split(separator: "\n").contains {
            $0.contains("  the same digest at the same seq  ") && $0.contains("  holds, ")
        }
    }

    @Test("every snapshot node is asked and judged") func everySnapshotNodeIs() async throws {
        let (tests, report) = try await unhurried { try await $0.loadWithTwoSnapshotNodes() }
        #expect(report.code == 0 && report.output.contains("asked      2 of 2 snapshot nodes"), "\(report)")
        let path = tests.run + "/nodes.history.jsonl"
        let said = try String(contentsOfFile: path, encoding: .utf8)
        for what in ["state", "head"] {
            let lines = said.split(separator: "\n").filter { $0.hasPrefix(#"{"e":"\#(what)""#) }
            let nodes = Set(lines.compactMap { $0.firstMatch(of: /"of":"([^"]+)"/).map { String($0.1) } })
            #expect(nodes.count == 2 && nodes.contains(tests.snapshot.url), "\(said)")
        }
        try await tests.dump()
        let verdict = try await BuiltProgram.run(["check", tests.run])
        #expect(verdict.code == 0 && Self.looksAtDigests(verdict), "\(verdict)")

        // One digest of one node is changed.
        let digit = try #require(said.firstMatch(of: /"digest":"([0-9a-f])/))
        var wrong = said
        wrong.replaceSubrange(digit.range, with: #""digest":""# + (digit.1 == "0" ? "1" : "0"))
        try wrong.write(toFile: path, atomically: false, encoding: .utf8)
        let broken = try await BuiltProgram.run(["check", tests.run])
        #expect(broken.code == 4, "\(broken)")
        #expect(broken.output.contains("VIOLATED, the same digest at the same seq"), "\(broken)")
    }

    private func loadWithTwoSnapshotNodes() async throws -> BuiltProgram.Run {
        let log = ["--log", "sqlite:\(folder.path)/log.sqlite", "--partitions", "3"]
        let second = try LocalNode(
            name: "snapshot-2",
            reel: BuiltProgram.path,
            arguments: ["snapshot", "--data", folder.path + "/snapshot-2"] + log,
            folder: folder.path
        )
        try await becomesWhole()
        for gateway in gateways {
            try await eventually("\(gateway.name) knows the second snapshot node") {
                await CommandRun(["cluster", "--url", gateway.url]).output.contains(second.url + " ")
            }
        }
        let report = try await load("--streams", "4", "--history", run)
        second.process.killNow()
        return report
    }

    private func histories() -> [String] {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: run)) ?? []
        // A file that is being written may end within a character.
        return names.map { name in
            let bytes = (try? Data(contentsOf: URL(filePath: "\(run)/\(name)"))) ?? Data()
            return String(decoding: bytes, as: UTF8.self)
        }
    }

    @Test("under nohup it outlives its terminal") func underNohupItOutlives() async throws {
        let words = ["load", "--seconds", "600", "--url", gateways[0].url, "--history", run]
        let shell = #"trap "" HUP; exec "$0" "$@""#
        let process = try ChildProcess("/bin/sh", ["-c", shell, BuiltProgram.path] + words)
        defer { process.killNow() }
        try await eventually("the load runs") { histories().contains { $0.contains(#""e":"ack""#) } }
        let status = try String(contentsOfFile: "/proc/\(process.pid)/status", encoding: .utf8)
        let ignored = try #require(status.firstMatch(of: /SigIgn:\s+([0-9a-f]+)/).flatMap { UInt64($0.1, radix: 16) })
        #expect(ignored & 1 << (SIGHUP - 1) != 0, "\(status)")
    }

    @Test("a load with all kinds of clients completes") func allKindsComplete() async throws {
        let kinds = [
            "--publishers", "3", "--sleepers", "2", "--readers", "4", "--editors", "3", "--coldstarts", "4", "--storm",
            "1", "--html", folder.path + "/report.html", "--expect", "acked>=250", "--history",
        ]
        let (tests, report) = try await unhurried { tests in
            try await tests.becomesWhole()
            return try await BuiltProgram.run(tests.words(kinds + [tests.run]), seconds: 300)
        }
        #expect(report.code == 0, "\(report)")
        #expect(report.output.contains("cold start p50") && report.output.contains("acked>=250: reached"), "\(report)")
        try await tests.dump()
        let verdict = try await BuiltProgram.run(["check", tests.run])
        #expect(verdict.code == 0, "\(verdict)")
        let page = try String(contentsOfFile: folder.path + "/report.html", encoding: .utf8)
        #expect(page.contains("<svg") && page.contains("as expected"))
        let tables = page.ranges(of: "<table>").count
        #expect(tables == 2 && page.ranges(of: #"<div class="wide"><table>"#).count == tables)
        #expect(page.contains(".wide{overflow-x:auto}"))
    }

    @Test("a page that cannot be written costs no load and no report") func aPageThatCannot() async throws {
        let page = folder.path + "/none/report.html"
        let early = try await load("--html", page, "--history", run)
        #expect(early.code == 1 && early.errors.contains("`\(page)` cannot be written: No such"), "\(early)")
        #expect(early.output.isEmpty && !FileManager.default.fileExists(atPath: run), "\(early)")
        let (_, late) = try await unhurried { try await $0.load("--html", "/dev/full") }
        #expect(late.code == 1 && late.errors.contains("`/dev/full` cannot be written: No space left"), "\(late)")
        #expect(late.output.contains("acked") && late.output.contains("stays in the log"), "\(late)")
    }

    @Test("an expectation that is missed is a failure") func anExpectationThatIs() async throws {
        let (_, report) = try await unhurried { try await $0.load("--expect", "p50<1us", "--json") }
        #expect(report.code == 1, "\(report)")
        #expect(report.output.hasPrefix(#"{"complete":true,"as_expected":false,"#), "\(report)")
        #expect(report.output.contains(#"{"expected":"p50<1us","found":""#), "\(report)")
        #expect(report.errors.contains("reel: expected p50<1us, found "), "\(report)")
    }

    @Test("half of the gateways may be dead") func halfOfTheGateways() async throws {
        // With 50 readers, some try the dead gateway first, whatever the seed is.
        let (_, report) = try await unhurried {
            try await $0.load("--url", "http://127.0.0.1:1", "--readers", "50")
        }
        #expect(report.code == 0, "\(report)")
        #expect(report.output.contains("note       nobody got in at http://127.0.0.1:1: "), "\(report)")
        #expect(report.errors.contains("reel: warning: no client is accepted at http://127.0.0.1:1: "), "\(report)")
    }

    /// A load that waited for its patience would exceed the time limit of the test.
    @Test("a load without a gateway fails at once and leaves no files", .timeLimit(.minutes(10)))
    func failsWithoutGateway() async throws {
        let nobody = try HeldPort()
        for url in ["http://127.0.0.1:\(nobody.number)", snapshot.url] {
            var plan = LoadPlan(urls: [url], streams: try #require(LoadPlan.streams("load", count: 1)))
            plan.patienceSeconds = 100_000
            plan.histories = try HistoryFolder(run)
            let clients = try LoadRun(plan)
            let failure = await #expect(throws: LoadFailure.self) { try await clients.run() }
            #expect(failure?.code == .unreachable)
            #expect(failure?.message.contains("check the address, or ask `reel doctor --url \(url)`") == true)
            #expect(!FileManager.default.fileExists(atPath: run), "another run may have the folder")
        }
        withExtendedLifetime(nobody) {}
    }

    @Test("load refuses invalid options before it does anything") func refusesInvalidOptions() async throws {
        let nobody = try await BuiltProgram.run(["load", "--url", "http://127.0.0.1:1"])
        #expect(nobody.code == 3 && nobody.errors.contains("http://127.0.0.1:1"), "\(nobody)")
        let long = String(repeating: "x", count: 127)
        for (words, complaint) in [
            (["--expect", "p99<soon"], "`soon` is no time"),
            (["--expect", "speed>1"], "`speed` is nothing that is measured"),
            (["--stream", "~x"], "`~x` is not a name of a stream; expected are"),
            (["--stream", long, "--streams", "20"], "too long for a name"),
            (["--profile", "nothing"], "neither a file nor one of the profiles"),
            (["--profile", "fanuot"], "did you mean `fanout`?"), (["--rate", "0"], "from 1 to"),
            (["--url", "ftp://x:1"], "`ftp://x:1` is not an address of a node"),
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
