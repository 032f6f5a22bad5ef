import Foundation
import NodeTestSupport
import ReelCore
import ReelLab
import ReelNet
import TestSupport
import Testing

@testable import ReelNode
@testable import ReelTool

/// Tests that docs/reference/metrics.md describes every metric as the nodes do, and that other
/// tools can read the nodes' output.
@Suite(.timeLimit(.minutes(20))) struct MetricsPageTests {
    @Test("the metrics page describes each metric as the nodes do") func pageMatchesNodes() async throws {
        let page = try text("docs/reference/metrics.md")
        var said: [String: String] = [:]
        for exposition in try await expositions() { said.merge(rows(exposition)) { $1 } }
        let names = try namesInTheCode()
        #expect(Set(said.keys) == names, "each is shown by a node from its start on")
        var found: [String: String] = [:]
        for line in page.split(separator: "\n") {
            guard let name = line.prefixMatch(of: /\| `((?:reel|process)_[a-z_]+)` \|/)?.1 else { continue }
            let former = found.updateValue(String(line), forKey: String(name))
            #expect(former == nil, "\(name) has one row")
        }
        for name in Set(said.keys).union(found.keys).sorted() where found[name] != said[name] {
            let (has, needs) = (found[name] ?? "no row", said[name] ?? "no row")
            Issue.record("docs/reference/metrics.md has for \(name)\n\(has)\nand should have\n\(needs)")
        }
        for reason in VoidRecord.Reason.allCases { #expect(page.contains("| `\(reason.rawValue)` |")) }
        for state in LogState.allCases { #expect(page.contains("| `\(state.rawValue)` |")) }
    }

    @Test(
        "promtool accepts the metrics of every node",
        .enabled(
            if: Installed.promtool,
            "promtool is missing, so it has judged no metrics: apt-get install prometheus"
        )
    )
    func promtoolAcceptsMetrics() async throws {
        let folder = try TemporaryFolder(prefix: "reel-promtool-")
        for (index, exposition) in try await expositions().enumerated() {
            let file = "\(folder.path)/\(index)"
            try exposition.write(toFile: file, atomically: true, encoding: .utf8)
            let run = try await Shell.run("exec promtool check metrics < '\(file)'")
            #expect(run.code == 0 && (run.output + run.errors).isEmpty, "\(run)\n\(exposition)")
        }
    }

    @Test(
        "Prometheus reads them",
        .enabled(
            if: Installed.prometheus,
            "prometheus is missing, so it has read no metrics: apt-get install prometheus"
        )
    )
    func prometheusReadsThem() async throws {
        let folder = try TemporaryFolder(prefix: "reel-prometheus-")
        let nodes = [try NodeProcess.gateway(in: folder), try NodeProcess.snapshot(in: folder)]
        let event = #"{"type":"insert","site":"6f1c0000-0000-4000-8000-000000000001","op":0,"model":"m","id":"1"}"#
        let answer = try await nodes[0].ask("POST", "/v1/streams/todo/events", body: #"{"events":[\#(event)]}"#)
        #expect(answer.status == 200, "\(String(decoding: answer.body, as: UTF8.self))")
        let targets = nodes.map { "\"127.0.0.1:\($0.port)\"" }.joined(separator: ", ")
        let configuration = """
            global:
              scrape_interval: 1s
            scrape_configs:
              - job_name: reel
                static_configs:
                  - targets: [\(targets)]

            """
        try configuration.write(toFile: folder.path + "/prometheus.yml", atomically: true, encoding: .utf8)
        let port = try HeldPort()
        let line = """
            exec prometheus --config.file='\(folder.path)/prometheus.yml' --storage.tsdb.path='\(folder.path)/tsdb' \
            --web.listen-address=127.0.0.1:\(port.number)
            """
        let log = folder.path + "/prometheus.log"
        let prometheus = try ChildProcess("/bin/bash", ["-c", line], outputLog: log, errorLog: log)
        defer { prometheus.killNow() }
        do {
            try await eventually("both nodes are up") { try await values(of: "up", at: port) == ["1", "1"] }
            try await eventually("what they count is there") {
                let acks = try await values(of: "reel_gateway_acks_total", at: port)
                let events = try await values(of: "reel_snapshot_events_total", at: port)
                let appends = try await values(of: "reel_gateway_append_seconds_count", at: port)
                return acks == ["1"] && events == ["1"] && appends == ["1"]
            }
        } catch {
            let said = try? String(contentsOfFile: log, encoding: .utf8)
            throw NeverCame(description: "\(error); prometheus said:\n\(said ?? "nothing")")
        }
        withExtendedLifetime(nodes) {}
    }

    /// Returns the metrics of each kind of node, and those of a log on Kafka and of certificates.
    private func expositions() async throws -> [String] {
        let folder = try TemporaryFolder(prefix: "reel-metrics-")
        var expositions: [String] = []
        for node in [try NodeProcess.gateway(in: folder), try NodeProcess.snapshot(in: folder)] {
            expositions.append(String(decoding: try await node.ask("GET", "/metrics").body, as: UTF8.self))
        }
        let metrics = Metrics()
        metrics.show([])
        CertificateMetrics.register(metrics) { 0 }
        return expositions + [metrics.text()]
    }

    /// Returns the rows that the page must have for this output, by name.
    private func rows(_ exposition: String) -> [String: String] {
        var (rows, help, kind, labels): ([String: String], Substring, Substring, Set<String>) = ([:], "", "", [])
        for line in exposition.split(separator: "\n") {
            if let match = line.wholeMatch(of: /# HELP [a-z_]+ (.*)/) {
                (help, labels) = (match.1, [])
            } else if let match = line.wholeMatch(of: /# TYPE ([a-z_]+) ([a-z]+)/) {
                kind = match.2
                rows[String(match.1)] = row(match.1, kind, labels, help)
            } else if let match = line.prefixMatch(of: #/([a-z_]+)\{(.*)\} /#) {
                labels.formUnion(match.2.matches(of: /([a-z]+)="/).map { String($0.1) }.filter { $0 != "le" })
                let name = kind == "histogram" ? match.1.replacing(/_bucket$|_sum$|_count$/, with: "") : match.1
                rows[String(name)] = row(name, kind, labels, help)
            }
        }
        return rows
    }

    private func row(_ name: Substring, _ kind: Substring, _ labels: Set<String>, _ help: Substring) -> String {
        let kinds = [String(kind)] + labels.sorted().map { "by `\($0)`" }
        return "| `\(name)` | \(kinds.joined(separator: ", ")) | \(help) |"
    }

    /// Returns every name in the code that has the form of a metric's name.
    private func namesInTheCode() throws -> Set<String> {
        var names: Set<String> = []
        let files = FileManager.default.enumerator(
            at: repository.appending(path: "Sources"),
            includingPropertiesForKeys: nil
        )
        while let file = files?.nextObject() as? URL {
            guard file.pathExtension == "swift" else { continue }
            let code = try String(contentsOf: file, encoding: .utf8)
            names.formUnion(
                code.matches(of: /"((?:reel_(?:node|gateway|snapshot|kafka|log)|process)_[a-z_]*[a-z])"/)
                    .map { String($0.1) }
            )
            names.formUnion(
                code.matches(of: /"(reel_(?:http|refused|limited|memory|certificate|disk|build)_[a-z_]*[a-z])"/)
                    .map { String($0.1) }
            )
        }
        return names
    }

    /// Returns the values of Prometheus's answer to a query, as text.
    private func values(of query: String, at port: HeldPort) async throws -> [String] {
        guard
            let answer = try? await Asker.ask("GET", port: port.number, "/api/v1/query?query=\(query)", body: ""),
            answer.status == 200,
            let json = try JSONSerialization.jsonObject(with: Data(answer.body)) as? [String: Any],
            let result = (json["data"] as? [String: Any])?["result"] as? [[String: Any]]
        else { return [] }
        return result.compactMap { ($0["value"] as? [Any])?.last as? String }
    }
}
