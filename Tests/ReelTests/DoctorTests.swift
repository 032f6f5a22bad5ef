import Dispatch
import ReelCore
import ReelLog
import ReelNet
import Synchronization
import TestSupport
import Testing

@testable import ReelTool

/// Tests the conclusions of the doctor from the answers of nodes.
@Suite struct DoctorTests {
    private let epoch = "9f00000000000001"

    /// Returns a node that was at these seqs at the first look and at the second.
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
                partitions: seqs.map { NodeStanding.Position(seq: $0, head: $0, goal: 0) }
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

    @Test("streams that have half of their sites are named once, with the command, and full ones are a problem")
    func crowdedStreams() throws {
        var nodes = try [node(1), node(2, "snapshot"), node(3, "snapshot")]
        nodes[1].crowd = .success(["todo": 50_000, "notes": 99_999])
        nodes[2].crowd = .success(["todo": 100_000])
        let found = findings(nodes).filter { $0.about == "limits" }
        #expect(found.map(\.level) == [.problem, .warning], "\(found)")
        #expect(found[0].text == "todo has 100000 of 100000 sites; new devices are refused (too_many_sites)")
        #expect(found[1].text == "notes has 99999 of 100000 sites")
        #expect(found[0].advice?.contains("`reel site retire todo --idle-events N --dry-run`") == true)
    }

    @Test("the doctor counts streams that a node may not name, and reports the missing right")
    func unnamedCrowdedStreams() throws {
        let metrics = """
            reel_snapshot_half_full_streams 2
            reel_snapshot_largest_stream_sites 60000

            """
        var secret = try node(2, "snapshot", metrics: metrics)
        secret.crowd = .failure(NodeProbe.NoSignOfLife(message: "no right", refusal: .forbidden))
        let found = try findings([node(1), secret]).filter { $0.about == "limits" }
        #expect(found.map(\.level) == [.warning], "\(found)")
        #expect(
            found.first?.text == "snapshot http://127.0.0.1:2 has 2 streams with half or more of 100000 sites, the"
                + " largest with 60000, and does not name them: no right"
        )
        #expect(found.first?.advice?.contains("`inspect`") == true)
    }

    private func worst(_ nodes: [ClusterReport.Node]) throws -> Finding {
        try #require(findings(nodes).first)
    }

    @Test("a cluster that is well has nothing but ok") func aClusterThatIsWell() throws {
        let nodes = try [node(1), node(2), node(3, "snapshot"), node(4, "snapshot")]
        let findings = findings(nodes)
        #expect(findings.allSatisfy { $0.level == .ok && $0.advice == nil })
        #expect(Set(findings.map(\.about)) == ["nodes", "log", "lag"])
        for about in ["log", "lag"] {
            let text = findings.first { $0.about == about }?.text ?? ""
            #expect(text.contains("each of the 4 nodes that answer"), "\(text)")
        }
    }

    /// Returns the `/readyz` answer of a node whose snapshot role has stopped in its only partition.
    private func stopped(_ code: String, _ reason: String, isReady: Bool = false, log: String = "ok") throws
        -> NodeStanding
    {
        let place = #"{"partition":0,"ready":\#(isReady),"seq":9,"goal":0,"code":"\#(code)","stopped":"\#(reason)"}"#
        let gateway = #"{"role":"gateway","ready":true,"log":"ok","partitions":[{"partition":0,"seq":30,"goal":0}]}"#
        let snapshot = #"{"role":"snapshot","ready":\#(isReady),"log":"\#(log)","partitions":[\#(place)]}"#
        let body =
            #"{"ready":\#(isReady),"reason":"\#(isReady ? "" : reason)","log":"\#(log)","epoch":"\#(epoch)","#
            + #""clock":1000000,"roles":[\#(gateway),\#(snapshot)]}"#
        return try NodeStanding(Array(body.utf8))
    }

    @Test(
        "a partition that a role does not process is a problem that names node, role, code and command",
        arguments: [
            ("damaged", "`reel epoch new --skip-damaged --from-snapshot DIR`"),
            ("diverged", "`reel epoch new --from-snapshot DIR`"),
            ("ahead_of_log", "`reel epoch new --from-snapshot DIR`"), ("truncated", "replace its folder of the epoch"),
            ("node_behind", "Free space"), ("internal", "newer version"), ("forbidden", "the right"),
            ("log_unavailable", "resumes automatically"), ("from_later", "newer version"),
        ]
    )
    func stops(code: String, advice: String) throws {
        var one = try node(1, "serve")
        one.looks = try [stopped(code, "found a barrier"), stopped(code, "found a barrier")]
        let found = findings([one])
        let finding = try #require(found.first { $0.about == "partitions" }, "\(found)")
        #expect(finding.level == .problem)
        #expect(
            finding.text == "serve http://127.0.0.1:1 no longer folds partition 0 (\(code)): found a barrier"
        )
        #expect(finding.advice?.contains(advice) == true, "\(finding.advice ?? "")")
        #expect(found.first { $0.about == "lag" }?.text.contains("is 21 records behind") == true, "\(found)")
    }

    @Test("a clock that is off is named, and the node is used like any other")
    func clocks() throws {
        func found(_ askedMs: Int64) throws -> [Finding] {
            var one = try node(1, "serve")
            one.looks = try [stopped("log_unavailable", "", isReady: true)]
            one.looks[0].partitions[0].stop = nil
            one.askedMs = askedMs
            return findings([one]).filter { $0.level != .ok }
        }
        #expect(try found(1_020_000).isEmpty)
        let behind = try #require(try found(1_000_000 + 15 * 60_000).first)
        #expect(behind.level == .warning)
        #expect(behind.text.hasPrefix("the clock of serve http://127.0.0.1:1 is 15 min behind"), "\(behind.text)")
        #expect(try found(1_000_000 - 60_000).first?.text.contains("ahead of") == true)
    }

    @Test("a node reports why it is not ready")
    func reportsUnreadyReason() throws {
        func reason(_ members: String) throws -> String {
            try NodeStanding(Array(#"{"ready":false\#(members)}"#.utf8)).reason
        }
        #expect(
            try reason(#","reason":"the other gateways are too far ahead""#) == "the other gateways are too far ahead"
        )
        #expect(try reason("") == "it gives no reason")
    }

    @Test("one box with both roles is well") func oneBoxWithBoth() throws {
        #expect(try worst([node(1, "serve")]).level == .ok)
    }

    @Test("a node that read nothing of what was there is stuck") func aNodeThatRead() throws {
        let finding = try worst([
            node(1, "gateway", [9, 20]), node(2, "snapshot", [9, 5]), node(3, "snapshot", [9, 20]),
        ])
        #expect(finding.level == .problem && finding.about == "lag")
        #expect(finding.text.contains("snapshot http://127.0.0.1:2 is 15 records behind: partition 1 at 5 of 20"))
        #expect(finding.advice?.contains("restart it") == true)
        let behind = try findings([node(1, "gateway", [20], log: "unavailable"), node(2, "snapshot", [5])])
        #expect(behind.first { $0.about == "lag" }?.advice?.contains("Solve the problem of the log first") == true)
    }

    @Test("a node that catches up is a warning with the time that it needs") func aNodeThatCatches() throws {
        let finding = try worst([node(1, "gateway", [1_000]), node(2, "serve", [100], [400])])
        #expect(finding.level == .warning && finding.about == "lag")
        #expect(finding.text.contains("it reads 300 a second, and needs about 3 s more"))
    }

    @Test("the doctor reports no lag for records that arrive between its probes") func ignoresNewRecords() throws {
        let findings = try findings([node(1, "gateway", [9], [5_000]), node(2, "serve", [9], [9])])
        #expect(findings.filter { $0.about == "lag" }.map(\.level) == [.ok])
    }

    @Test("a node that goes over to another epoch meanwhile is not measured") func aNodeThatGoes() throws {
        var moving = try node(1, "serve", [9], [3, 3, 3])
        moving.looks[0].epoch = "9f00000000000000"
        #expect(findings([moving]).allSatisfy { $0.about != "lag" })
        let more = try findings([node(1, "serve", [9], [9, 3]), moving, node(2, "serve", [9], [9])])
        #expect(more.filter { $0.about == "lag" }.map(\.level) == [.ok])
        let other = try findings([node(1, "serve", [900]), node(2, "serve", [9], epoch: "9f00000000000002")])
        #expect(other.filter { $0.about == "lag" }.map(\.level) == [.ok], "their seqs are not of one log")
    }

    @Test("the doctor accepts extreme and non-finite numbers in metrics") func acceptsExtremeNumbers() throws {
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

    @Test("one time is not called times") func oneTimeIsNot() throws {
        let found = try findings([node(1, "serve", metrics: "reel_gateway_lagged_total 1")])
        #expect(found.contains { $0.text.hasPrefix("1 time a client read too slowly") }, "\(found)")
        #expect(found.contains { $0.text.hasPrefix("1 node with both roles answers, build") }, "\(found)")
    }

    @Test("the doctor measures lag against the end of the log") func measuresLagAgainstLog() throws {
        let log = ClusterReport.Log(epoch: try #require(Epoch(epoch)), bounds: [LogBounds(first: 0, last: 30)])
        let report = ClusterReport(nodes: [try node(1, "serve")], log: .success(log))
        let finding = try #require(Diagnosis(report: report).findings.first)
        #expect(finding.text.contains("is 21 records behind"))
    }

    @Test("the doctor blames the log when no node reads its records") func blamesUnreadLog() throws {
        let log = ClusterReport.Log(epoch: try #require(Epoch(epoch)), bounds: [LogBounds(first: 0, last: 30)])
        let nodes = try [node(1), node(2, "snapshot", [8]), node(3, "snapshot")]
        let lag = Diagnosis(report: ClusterReport(nodes: nodes, log: .success(log))).findings.filter {
            $0.about == "lag"
        }
        #expect(lag.map(\.level) == [.problem])
        #expect(lag.first?.text == "no node has read a record within a second: partition 0 at 9 of 30")
        #expect(lag.first?.advice?.contains("not the nodes") == true)
    }

    @Test("the doctor does not blame the log when the nodes report that they have stopped") func blamesStoppedNodes()
        throws
    {
        let log = ClusterReport.Log(epoch: try #require(Epoch(epoch)), bounds: [LogBounds(first: 0, last: 30)])
        func lag(_ nodes: [ClusterReport.Node]) -> [Finding] {
            Diagnosis(report: ClusterReport(nodes: nodes, log: .success(log))).findings.filter { $0.about == "lag" }
        }
        var nodes = try [node(1), node(2, "snapshot")]
        for index in nodes.indices {
            let look = try stopped("internal", "a barrier", isReady: true)
            nodes[index].looks = [look, look]
        }
        #expect(lag(nodes).count == 2)
        #expect(
            lag(nodes).allSatisfy { $0.level == .problem && $0.text.contains("it has stopped: ") },
            "\(lag(nodes))"
        )
        #expect(
            lag(nodes).allSatisfy { $0.text.contains("a barrier") && $0.advice?.contains("not the nodes") == false }
        )
        let ended = try lag([node(1, log: "ended"), node(2, "snapshot", log: "ended")])
        #expect(ended.count == 2 && ended.allSatisfy { $0.text.contains("it has stopped: ") }, "\(ended)")
    }

    @Test("a log may take as long as it wants while it answers") func aLogMayTake() async throws {
        // Each silence lasts until it is interrupted. The log answers again when the next silence has begun.
        let silence = DispatchSemaphore(value: 0)
        let cutShort = Atomic(0)
        let answer = try await withInactivityTimeout {
            silence.signal()
            do { try await Task.sleep(for: .seconds(3_600)) } catch {
                cutShort.add(1, ordering: .relaxed)
                throw error
            }
        } of: { heard in
            for _ in 1...20 {
                silence.wait()
                heard()
            }
            return 7
        }
        #expect(answer == 7)
        try await eventually("each silence is cut short") { cutShort.load(ordering: .relaxed) >= 20 }

        let left = DispatchSemaphore(value: 0)
        let silent = try await withInactivityTimeout(silence: {}) { _ in
            left.wait()
            return 7
        }
        left.signal()
        #expect(silent == nil)
    }

    @Test("a log that does not answer is not a log without nodes") func aLogThatDoes() throws {
        let report = ClusterReport(log: .failure(CommandError(.unreachable, "gone")))
        let texts = Diagnosis(report: report).findings.map(\.text)
        #expect(texts.contains { $0.contains("none is known") } && texts.contains { $0.contains("gone") })
        #expect(!texts.contains { $0.contains("no node has announced itself") })
    }

    @Test("the doctor advises about brokers only when the log has brokers") func advisesAboutBrokers() throws {
        var report = ClusterReport(log: .failure(CommandError(.unreachable, "there is no log at `x`")))
        let advice = { try #require(Diagnosis(report: report).findings.first { $0.about == "log" }?.advice) }
        #expect(try advice().hasPrefix("Correct --log."))
        report.hasBrokers = true
        #expect(try advice().hasPrefix("Start the brokers"))
    }

    @Test("a second snapshot node that does not answer is to be brought back") func aSecondSnapshotNode() throws {
        var silent = try node(4, "snapshot")
        (silent.looks, silent.failure) = ([], "silent")
        let nodes = try [node(1), node(2), node(3, "snapshot")]
        let advice = { findings($0).first { $0.text.contains("one snapshot node serves") }?.advice }
        #expect(advice(nodes)?.contains("Start a second snapshot node") == true)
        #expect(advice(nodes + [silent])?.contains("Restart the one") == true)
    }

    @Test("a node that is full is not a dead one") func aNodeThatIsFull() throws {
        var full = try node(2)
        (full.looks, full.failure, full.refusal) = ([], "found 3 open connections", .overloaded)
        let finding = try #require(findings([try node(1), full]).first { $0.text.contains("3 open connections") })
        #expect(finding.text.contains("refuses requests: ") && finding.advice?.contains("--connections-max") == true)
    }

    @Test("the doctor reports no missing node when no node lists its peers") func missesNoUnlistedNode() throws {
        var gateway = try node(1, metrics: "reel_gateway_lagged_total 0")
        gateway.announced = nil
        gateway.secrecy = NodeProbe.NoSignOfLife(message: "found no token (unauthorized)", refusal: .unauthorized)
        let found = findings([gateway])
        #expect(found.filter { $0.level != .ok }.map(\.level) == [.problem], "\(found)")
        #expect(found.first?.text.hasSuffix("found no token (unauthorized)") == true, "\(found)")
        #expect(found.first?.advice == "Give a valid token with --token or REEL_TOKEN.")
        let known = try findings([gateway, node(2)])
        #expect(known.contains { $0.text.hasPrefix("no snapshot node answers") }, "another node has told")
    }

    @Test(
        "each state of the log has its own words",
        arguments: [
            ("degraded", Finding.Level.warning, "slow for"), ("unavailable", .problem, "unavailable for"),
            ("truncated", .problem, "trimmed while"), ("ended", .warning, "ended for"),
            ("ahead_of_log", .problem, "has lost records that"), ("diverged", .problem, "not the log that"),
            ("partition 2: the file is damaged", .problem, "has stopped: partition 2: the file is damaged"),
        ]
    )
    func eachStateOfThe(word: String, level: Finding.Level, text: String) throws {
        let finding = try worst([node(1, "serve", log: word)])
        #expect(finding.level == level && finding.about == "log")
        #expect(finding.text.contains(text), "\(finding.text)")
        #expect(finding.advice != nil)
    }

    @Test("the doctor warns of a failed write to the log, with the reason")
    func failedWrite() throws {
        var node = try node(1, "serve", log: "degraded")
        for index in node.looks.indices { node.looks[index].detail = "log_unavailable: the disk is full" }
        let finding = try worst([node])
        #expect(finding.level == .warning, "\(finding)")
        #expect(finding.text.hasSuffix("; log_unavailable: the disk is full"), "\(finding)")
        #expect(finding.advice?.contains("publish an event") == true)
    }

    @Test("the doctor identifies a node by its metrics while no node can announce itself")
    func identifiesNodeByMetrics() throws {
        var lone = try node(1, "gateway", log: "unavailable", metrics: "reel_gateway_oldest_publish_seconds 7.3")
        lone.announced = nil
        let findings = findings([lone])
        let log = try #require(findings.first { $0.about == "log" })
        #expect(log.level == .problem)
        #expect(
            log.text
                == "unavailable for gateway http://127.0.0.1:1: new publishes are nacked; the oldest publish has waited for"
                + " 7.3 s"
        )
    }

    @Test("the doctor reports a log without announcements as a problem") func unannouncedNodes() throws {
        let log = ClusterReport.Log(epoch: try #require(Epoch(epoch)), bounds: [LogBounds(first: 0, last: 30)])
        let findings = Diagnosis(report: ClusterReport(log: .success(log))).findings
        #expect(findings.map(\.level) == [.problem, .ok])
        #expect(findings.first?.text.hasPrefix("no node has announced itself") == true)
        #expect(findings.last?.text == "ok; epoch \(epoch), 1 partition")
    }

    @Test("the doctor does not report a node as missing after it has left in order") func ignoresLeftNode() throws {
        func row(_ url: String, atMs: Int64, hasLeft: Bool = false) -> ClusterRow {
            var row = ClusterRow()
            (row.role, row.url, row.atMs, row.ageMs, row.hasLeft) = ("gateway", url, atMs, 2_149, hasLeft)
            return row
        }
        let (left, back, tls) = ("http://127.0.0.1:7", "http://127.0.0.1:8", try TLSClient())
        var report = ClusterReport(nodes: [])
        // A process that was killed may have had the same address before.
        report.add(
            [
                row(left, atMs: 2, hasLeft: true), row(left, atMs: 1), row(back, atMs: 3, hasLeft: true),
                row(back, atMs: 4), row("no address", atMs: 5, hasLeft: true),
            ],
            tls: tls,
            token: nil
        )
        #expect(report.left == ["gateway \(left) (left 2.1 s ago)"])
        #expect(report.nodes.map(\.address.description) == [back] && report.oddAddresses.isEmpty)
        report.nodes = try [node(1, "serve")]
        let found = Diagnosis(report: report).findings
        #expect(found.filter { $0.level != .ok }.map(\.level) == [.note], "\(found)")
        let address = try NodeAddress(left)
        report = ClusterReport(nodes: [ClusterReport.Node(address: address, isNamed: true)])
        report.add([row(left, atMs: 2, hasLeft: true)], tls: tls, token: nil)
        report.nodes[0].failure = "connection refused"
        let named = Diagnosis(report: report).findings
        #expect(
            named.first?.text == "gateway \(left) does not answer: connection refused; it left 2.1 s ago",
            "\(named)"
        )
    }

    @Test(
        "a token goes in the open only where a named node is",
        arguments: [(["https://a:1"], true), (["https://a:1", "http://a:2"], false), ([], false)]
    )
    func aTokenGoesIn(named: [String], isKept: Bool) throws {
        var report = ClusterReport(
            nodes: try named.map { ClusterReport.Node(address: try NodeAddress($0), isNamed: true) }
        )
        let rows = ["https://b:1", "http://b:2"].map { url in
            var row = ClusterRow()
            (row.role, row.url) = ("gateway", url)
            return row
        }
        report.add(rows, tls: try TLSClient(), token: "secret")
        let tokens = report.nodes.suffix(2).map(\.address.token)
        #expect(tokens == ["secret", isKept ? nil : "secret"])
    }

    @Test("the doctor reports that all nodes have left") func reportsAllLeft() throws {
        let log = ClusterReport.Log(epoch: try #require(Epoch(epoch)), bounds: [LogBounds(first: 0, last: 30)])
        let report = ClusterReport(left: ["gateway http://127.0.0.1:7 (left 2.1 s ago)"], log: .success(log))
        let findings = Diagnosis(report: report).findings
        #expect(findings.map(\.level) == [.problem, .note, .ok])
        #expect(findings.first?.text.hasSuffix("have left") == true, "\(findings)")
    }

    @Test("two epochs are a problem") func twoEpochsAreA() throws {
        let finding = try worst([node(1, "serve"), node(2, "serve", epoch: "9f00000000000002")])
        #expect(finding.level == .problem && finding.text.contains("not all nodes are in the same epoch"))
    }

    @Test("nodes of two deployments are a problem, and their epochs none besides")
    func deployments() throws {
        var nodes = [try node(1, "serve"), try node(2, "serve", epoch: "9f00000000000002"), try node(3, "serve")]
        for (index, deployment) in ["a", "b", ""].enumerated() {
            nodes[index].looks = nodes[index].looks.map {
                var look = $0
                look.deployment = deployment
                return look
            }
        }
        let problems = findings(nodes).filter { $0.level == .problem }
        #expect(problems.count == 1)
        #expect(
            problems.first?.text
                == "nodes of 2 deployments answer: a: serve http://127.0.0.1:1; b: serve http://127.0.0.1:2"
        )
    }

    @Test("a cluster without snapshot nodes is a problem and a dead node a warning") func aClusterWithoutSnapshot()
        throws
    {
        var dead = try node(3, "snapshot")
        (dead.looks, dead.failure) = ([], "connection refused")
        let findings = try findings([node(1), node(2), dead])
        #expect(findings.map(\.level).prefix(2) == [.problem, .warning])
        #expect(findings[0].text.contains("no snapshot node answers"))
        #expect(findings[1].text == "snapshot http://127.0.0.1:3 does not answer: connection refused")
    }

    @Test("a log's file that is not the one that it was is a problem, of a node or where the log itself is asked")
    func changedFile() throws {
        let changed = "reel_log_file_changed 1\n"
        let found = try findings([node(1, metrics: changed), node(2), node(3, "snapshot", metrics: changed)])
        #expect(found.first?.level == .problem && found.first?.about == "log", "\(found)")
        #expect(
            found.first?.text.contains("gateway http://127.0.0.1:1, snapshot http://127.0.0.1:3") == true,
            "\(found)"
        )
        #expect(found.first?.advice?.contains("`reel epoch new`") == true)
        #expect(found.first?.advice?.contains("`reel log accept`") == true)
        #expect(!found.contains { $0.level == .ok && $0.about == "log" })

        var report = ClusterReport(nodes: [try node(1, "serve")])
        var log = ClusterReport.Log(epoch: Epoch(0x9f00_0000_0000_0001), bounds: [LogBounds(first: 0, last: 9)])
        report.log = .success(log)
        #expect(Diagnosis(report: report).findings.allSatisfy { $0.level == .ok })
        log.notice = "it was copied"
        report.log = .success(log)
        #expect(Diagnosis(report: report).findings.first?.level == .problem)
    }

    @Test("clients that hold more than the log are a warning that names the next epoch") func clientsAhead() throws {
        let found = try findings([node(1, metrics: "reel_gateway_ahead_of_log_total 3\n"), node(2, "snapshot")])
        let ahead = try #require(found.first { $0.about == "log" })
        #expect(ahead.level == .warning && ahead.text.contains("reported 3 times since the node started"), "\(ahead)")
        #expect(ahead.advice?.contains("`reel epoch new`") == true)
    }

    @Test("the doctor reports refusals of clients, with advice") func reportsClientRefusals() throws {
        let page = """
            # TYPE reel_gateway_nacks_total counter
            reel_gateway_nacks_total{code="stale"} 3
            reel_gateway_nacks_total{code="log_unavailable"} 2
            reel_gateway_nacks_total{code="gap"} 0
            reel_gateway_errors_total{code="ahead_of_log"} 1
            reel_gateway_void_records_total{reason="bad_event"} 4
            reel_gateway_in_flight_bytes 90
            reel_gateway_in_flight_limit_bytes 100
            reel_gateway_lagged_total 1
            reel_node_refused_connections_total{limit="connections"} 11
            reel_node_refused_connections_total{limit="memory"} 0
            """
        let limits = try findings([node(1, metrics: page), node(2, "snapshot")]).filter { $0.about == "limits" }
        #expect(limits.map(\.level) == [.warning, .warning, .warning, .warning, .note, .note, .note])
        let ahead = limits.first { $0.text.contains("1 time: ahead_of_log") }
        #expect(ahead?.advice == ErrorCode.aheadOfLog.entry.advice)
        #expect(limits.contains { $0.text.contains("3 times: stale") && $0.advice == ErrorCode.stale.entry.advice })
        #expect(limits.contains { $0.text.contains("2 times: log_unavailable") && $0.level == .warning })
        #expect(limits.contains { $0.text.contains("4 bad_event") })
        #expect(limits.contains { $0.text.contains("has 90 of 100 bytes in flight to the log") })
        #expect(limits.contains { $0.text.contains("11 connections") && $0.text.contains("(--connections-max)") })
        #expect(!limits.contains { $0.text.contains("gap") })
    }
}
