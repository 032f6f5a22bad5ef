import Foundation
import Testing

@testable import ReelLab

/// Tests `reel chaos` with the shortest possible runs.
@Suite(.timeLimit(.minutes(20))) struct ChaosTests {
    /// Repeats a run a few times if a process was delayed for longer than the load or the faults allow. A finding of
    /// the checker, or a missing event, is never repeated.
    private func chaos(_ words: [String], shell: String = "") async throws -> BuiltProgram.Run {
        var run = try await BuiltProgram.run(["chaos"] + words, shell: shell, seconds: 600)
        let signs = ["let a client in", "no effect: ", "no node had the folded state", "in vain for two minutes"]
        for _ in 0..<3 where run.says(signs) {
            run = try await BuiltProgram.run(["chaos"] + words, shell: shell, seconds: 600)
        }
        return run
    }

    @Test("a cluster that is broken under load loses nothing") func aClusterThatIs() async throws {
        let run = try await chaos(
            ["--seconds", "6", "--seed", "5", "--gateways", "2", "--snapshots", "1", "--rate", "100"]
        )
        #expect(run.code == 0, "\(run)")
        #expect(run.output.contains("verdict: valid"), "\(run)")
        #expect(run.output.contains("everything is healed"), "\(run)")
        #expect(LoadCommandTests.looksAtDigests(run), "\(run)")
    }

    @Test("a run that broke nothing is no pass") func aRunThatBroke() async throws {
        let run = try await chaos(["--seconds", "1", "--gateways", "1", "--snapshots", "1"])
        #expect(run.code == 1, "\(run)")
        #expect(run.output.contains("there was no fault, so nothing is proven"), "\(run)")
        let folder = run.output.split(separator: " ").first { $0.contains("reel-chaos-") }?.prefix { $0 != "," } ?? ""
        #expect(!folder.isEmpty && !FileManager.default.fileExists(atPath: String(folder)), "\(folder) is still there")
    }

    @Test("a chaos run reports the reason at once when its load ends") func reportsEndOfLoad() async throws {
        let folder = try TemporaryFolder(prefix: "reel-chaos-test-")
        var plan = ChaosPlan()
        (plan.gateways, plan.snapshots) = (1, 1)
        let chaos = try ChaosRun(plan, reel: BuiltProgram.path, folder: folder.path + "/fresh") { _ in }
        defer { chaos.end() }
        // The test holds the gateways' ports, so that no node of another test listens there.
        var held: [Int32] = []
        defer { for socket in held { close(socket) } }
        for gateway in chaos.cluster.gateways {
            gateway.process.killNow()
            held.append(try #require(LoopbackPort.bound(to: Int(gateway.port))))
        }
        let failure = await #expect(throws: LoadFailure.self) { try await chaos.run() }
        #expect(failure?.code == .unreachable)
        let histories = try FileManager.default.contentsOfDirectory(atPath: folder.path + "/fresh")
            .filter { $0.hasSuffix(".history.jsonl") }
        #expect(histories == ["driver.history.jsonl"])
    }

    @Test("the proxies descriptors are counted too") func theProxiesDescriptorsAre() async throws {
        let words = ["--gateways", "1", "--snapshots", "1", "--publishers", "10", "--readers", "40"]
        let most = try await BuiltProgram.run(["chaos", "--seconds", "5"] + words, shell: "ulimit -n 128;")
        #expect(most.code == 1 && most.output.isEmpty, "\(most)")
        #expect(most.errors.contains("may have 128; allow more with `ulimit -n 230`"), "\(most)")
        // A soft limit does not limit the run, because the program raises it.
        let run = try await chaos(["--seconds", "1"] + words, shell: "ulimit -Sn 128;")
        #expect(run.output.contains("there was no fault, so nothing is proven"), "\(run)")
    }

    @Test("chaos without publishers starts nothing") func requiresPublishers() async throws {
        let run = try await BuiltProgram.run(["chaos", "--seconds", "5", "--publishers", "0"])
        #expect(run.code == 2 && run.output.isEmpty, "\(run)")
        #expect(run.errors.contains("found 0 publishers, expected at least one"), "\(run)")
    }

    @Test("a folder with histories of another run is refused") func aFolderWithHistories() async throws {
        let folder = try TemporaryFolder(prefix: "reel-chaos-test-")
        let first = try HistoryFolder(folder.path)
        _ = first.history(of: "somebody", .client)
        try first.flush()
        let run = try await BuiltProgram.run(["chaos", "--seconds", "5", "--evidence", folder.path])
        #expect(run.code == 1, "\(run)")
        #expect(run.errors.contains("holds the histories of another run"), "\(run)")
    }
}
