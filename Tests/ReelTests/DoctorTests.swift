import ReelCore
import ReelLog
import Testing

@testable import reel

/// What the doctor concludes from what nodes said.
@Suite struct DoctorTests {
    private let epoch = "9f00000000000001"

    /// A node that stood at these seqs, at the first look and at the second.
    private func node(
        _ port: Int,
        _ role: String = "gateway",
        _ first: [Seq] = [9],
        _ second: [Seq]? = nil,
        log: String = "ok",
        epoch: String? = nil,
        metrics: String = ""
    ) throws -> ClusterReport.Node {
        let looks = [first, second ?? first].map { seqs in
            NodeStanding(
                isReady: true,
                log: log,
                epoch: epoch ?? self.epoch,
                partitions: seqs.map { NodeStanding.Position(seq: $0, goal: 0) }
            )
        }
        var row = ClusterRow()
        (row.role, row.url, row.build) = (role, "http://127.0.0.1:\(port)", "0.1.0")
        return ClusterReport.Node(
            address: try NodeAddress(row.url),
            announced: row,
            looks: looks,
            metrics: MetricsPage(metrics)
        )
    }

    private func findings(_ nodes: [ClusterReport.Node]) -> [Finding] {
        Diagnosis(report: ClusterReport(nodes: nodes)).findings
    }

    private func worst(_ nodes: [ClusterReport.Node]) throws -> Finding {
        try #require(findings(nodes).first)
    }

    @Test func aClusterThatIsWellHasNothingButOk() throws {
        let nodes = try [node(1), node(2), node(3, "snapshot"), node(4, "snapshot")]
        let findings = findings(nodes)
        #expect(findings.allSatisfy { $0.level == .ok && $0.advice == nil })
        #expect(Set(findings.map(\.about)) == ["nodes", "log", "lag"])
    }

    @Test func oneBoxWithBothRolesIsWell() throws {
        #expect(try worst([node(1, "serve")]).level == .ok)
    }

    @Test func aNodeThatReadNothingOfWhatWasThereIsStuck() throws {
        let finding = try worst([
            node(1, "gateway", [9, 20]), node(2, "snapshot", [9, 5]), node(3, "snapshot", [9, 20]),
        ])
        #expect(finding.level == .problem && finding.about == "lag")
        #expect(finding.text.contains("snapshot http://127.0.0.1:2 is 15 records behind: partition 1 at 5 of 20"))
    }

    @Test func aNodeThatCatchesUpIsAWarningWithTheTimeThatItNeeds() throws {
        let finding = try worst([node(1, "gateway", [1_000]), node(2, "serve", [100], [400])])
        #expect(finding.level == .warning && finding.about == "lag")
        #expect(finding.text.contains("it reads 300 a second, which is 3 s more"))
    }

    @Test func whatCameBetweenTheLooksIsNoLag() throws {
        let findings = try findings([node(1, "gateway", [9], [5_000]), node(2, "serve", [9], [9])])
        #expect(findings.filter { $0.about == "lag" }.map(\.level) == [.ok])
    }

    @Test func aNodeThatGoesOverToAnotherEpochMeanwhileIsNotMeasured() throws {
        var moving = try node(1, "serve", [9], [3, 3, 3])
        moving.looks[0].epoch = "9f00000000000000"
        #expect(findings([moving]).allSatisfy { $0.about != "lag" })
        let more = try findings([node(1, "serve", [9], [9, 3]), moving, node(2, "serve", [9], [9])])
        #expect(more.filter { $0.about == "lag" }.map(\.level) == [.ok])
        let other = try findings([node(1, "serve", [900]), node(2, "serve", [9], epoch: "9f00000000000002")])
        #expect(other.filter { $0.about == "lag" }.map(\.level) == [.ok], "their seqs are not of one log")
    }

    @Test func whateverANodeSaysIsANumber() throws {
        let far = Seq(1) << 53 - 1
        let page =
            ["nan", "inf", "1e300", "-1e300"].map { "reel_gateway_nacks_total{code=\"stale\"} \($0)" }
            + [
                "reel_gateway_in_flight_bytes 1e300", "reel_gateway_in_flight_limit_bytes 1",
                "reel_gateway_lagged_total inf",
            ]
        for line in page {
            let nodes = try [
                node(1, "serve", [far, far, far]),
                node(2, "serve", [-1, -1, -1], metrics: page.dropFirst(4).joined(separator: "\n") + "\n" + line),
            ]
            #expect(findings(nodes).contains { $0.level == .problem })
        }
    }

    @Test func oneTimeIsNotCalledTimes() throws {
        let found = try findings([node(1, "serve", metrics: "reel_gateway_lagged_total 1")])
        #expect(found.contains { $0.text.hasPrefix("1 time a client read too slowly") }, "\(found)")
        #expect(found.contains { $0.text.hasPrefix("1 node with both roles answers, build") }, "\(found)")
    }

    @Test func theLogItselfSaysHowFarItGoes() throws {
        let log = ClusterReport.Log(epoch: try #require(Epoch(epoch)), bounds: [LogBounds(first: 0, last: 30)])
        let report = ClusterReport(nodes: [try node(1, "serve")], log: .success(log))
        let finding = try #require(Diagnosis(report: report).findings.first)
        #expect(finding.text.contains("is 21 records behind"))
    }

    @Test(arguments: [
        ("degraded", Finding.Level.warning, "slow for"), ("unavailable", .problem, "away for"),
        ("ended", .warning, "over for"), ("diverged", .problem, "not the one that"),
        ("partition 2: the file is damaged", .problem, "does not go on: partition 2: the file is damaged"),
    ])
    func eachStateOfTheLogHasItsOwnWords(word: String, level: Finding.Level, text: String) throws {
        let finding = try worst([node(1, "serve", log: word)])
        #expect(finding.level == level && finding.about == "log")
        #expect(finding.text.contains(text), "\(finding.text)")
        #expect(finding.advice != nil)
    }

    @Test func whileNobodyCanAnnounceItselfANodeIsKnownByItsMetrics() throws {
        var lone = try node(1, "gateway", log: "unavailable", metrics: "reel_gateway_oldest_publish_ms 7300")
        lone.announced = nil
        let findings = findings([lone])
        let log = try #require(findings.first { $0.about == "log" })
        #expect(log.level == .problem)
        #expect(
            log.text
                == "away for gateway http://127.0.0.1:1: new publishes are nacked; the oldest publish waits for 7.3 s"
        )
    }

    @Test func aLogInWhichNobodyAnnouncesItselfIsAProblem() throws {
        let log = ClusterReport.Log(epoch: try #require(Epoch(epoch)), bounds: [LogBounds(first: 0, last: 30)])
        let findings = Diagnosis(report: ClusterReport(log: .success(log))).findings
        #expect(findings.map(\.level) == [.problem, .ok])
        #expect(findings.first?.text.hasPrefix("nobody has announced itself") == true)
        #expect(findings.last?.text == "ok; epoch \(epoch), 1 partition")
    }

    @Test func twoEpochsAreAProblem() throws {
        let finding = try worst([node(1, "serve"), node(2, "serve", epoch: "9f00000000000002")])
        #expect(finding.level == .problem && finding.text.contains("not all are in the same epoch"))
    }

    @Test func aClusterWithoutSnapshotNodesIsAProblemAndADeadNodeAWarning() throws {
        var dead = try node(3, "snapshot")
        (dead.looks, dead.failure) = ([], "connection refused")
        let findings = try findings([node(1), node(2), dead])
        #expect(findings.map(\.level).prefix(2) == [.problem, .warning])
        #expect(findings[0].text.contains("no snapshot node answers"))
        #expect(findings[1].text == "snapshot http://127.0.0.1:3 does not answer: connection refused")
    }

    @Test func whatClientsWereRefusedIsToldWithWhatToDo() throws {
        let page = """
            # TYPE reel_gateway_nacks_total counter
            reel_gateway_nacks_total{code="stale"} 3
            reel_gateway_nacks_total{code="log_unavailable"} 2
            reel_gateway_nacks_total{code="gap"} 0
            reel_gateway_void_records_total{reason="bad_event"} 4
            reel_gateway_in_flight_bytes 90
            reel_gateway_in_flight_limit_bytes 100
            reel_gateway_lagged_total 1
            """
        let limits = try findings([node(1, metrics: page), node(2, "snapshot")]).filter { $0.about == "limits" }
        #expect(limits.map(\.level) == [.warning, .warning, .warning, .note, .note])
        #expect(limits.contains { $0.text.contains("3 times: stale") && $0.advice == ErrorCode.stale.entry.advice })
        #expect(limits.contains { $0.text.contains("2 times: log_unavailable") && $0.level == .warning })
        #expect(limits.contains { $0.text.contains("4 bad_event") })
        #expect(limits.contains { $0.text.contains("holds 90 of 100 bytes") })
        #expect(!limits.contains { $0.text.contains("gap") })
    }
}
