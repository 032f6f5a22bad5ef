import Testing

@testable import ReelLab

/// `reel chaos`, as short as it can be.
@Suite(.timeLimit(.minutes(5))) struct ChaosTests {
    @Test func aClusterThatIsBrokenUnderLoadLosesNothing() async throws {
        let words = ["chaos", "--seconds", "6", "--seed", "5", "--gateways", "2", "--snapshots", "1", "--rate", "100"]
        let run = try await BuiltProgram.run(words, seconds: 240)
        #expect(run.code == 0, "\(run)")
        #expect(run.output.contains("verdict: valid"), "\(run)")
        #expect(run.output.contains("everything is healed"), "\(run)")
    }

    @Test func aRunWhoseLoadEndsSaysWhyAtOnce() async throws {
        let folder = try TemporaryFolder(prefix: "reel-chaos-test-")
        var plan = ChaosPlan()
        (plan.gateways, plan.snapshots) = (1, 1)
        let chaos = try ChaosRun(plan, reel: BuiltProgram.path, folder: folder.path + "/fresh") { _ in }
        defer { chaos.end() }
        for gateway in chaos.cluster.gateways { gateway.process.killNow() }
        let failure = await #expect(throws: LoadFailure.self) { try await chaos.run() }
        #expect(failure?.code == .unreachable)
    }

    @Test func aFolderWithHistoriesOfAnotherRunIsRefused() async throws {
        let folder = try TemporaryFolder(prefix: "reel-chaos-test-")
        let first = try HistoryFolder(folder.path)
        _ = first.history(of: "somebody", .client)
        try first.flush()
        let run = try await BuiltProgram.run(["chaos", "--seconds", "5", "--evidence", folder.path])
        #expect(run.code == 1, "\(run)")
        #expect(run.errors.contains("holds the histories of another run"), "\(run)")
    }
}
