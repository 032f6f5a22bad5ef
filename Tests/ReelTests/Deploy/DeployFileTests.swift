import Foundation
import ReelLab
import ReelNet
import Testing

@testable import ReelTool

/// Tests that the files in deploy/ and the Dockerfile fit the program, and the other programs that read them.
@Suite struct DeployFileTests {
    @Test("the image has what the program is built with") func theImageHasWhat() throws {
        let dockerfile = try text("Dockerfile")
        let installs = dockerfile.matches(of: /--no-install-recommends(?: \\\n)? +([^\\]*)/).map { packages($0.1) }
        #expect(installs.count == 2)
        let makefile = try #require(text("Makefile").firstMatch(of: /APT_LINE := .*--no-install-recommends (.*)/))
        #expect(installs.first == packages(makefile.1))
        let readme = try #require(text("deploy/README.md").firstMatch(of: /`([^`]*libuv1[^`]*)`/))
        #expect(installs.last == packages(readme.1))
    }

    @Test("the command line accepts the variables and commands of the image") func acceptsImageCommands() throws {
        let dockerfile = try text("Dockerfile")
        let variables = dockerfile.matches(of: /(REEL_[A-Z_]+)=([^ \n]+)/).map { (String($0.1), String($0.2)) }
        let parser = ArgumentParser(
            commands: CommandTable.all,
            environment: Dictionary(variables) { $1 }
        )
        #expect(parser.warnings() == [])
        let calls = dockerfile.matches(of: /CMD (\[.*\])/).map { String($0.1) }
        #expect(calls.count == 2)
        for call in calls {
            let words = try JSONDecoder().decode([String].self, from: Data(call.utf8))
            _ = try parser.request(Array(words.drop { $0 == "reel" }))
        }
    }

    @Test("the services variables are settings") func theServicesVariablesAre() throws {
        let unit = try text("deploy/systemd/reel.service") + text("deploy/systemd/reel.service.d/network.conf")
        let names = unit.matches(of: /REEL_[A-Z_]+/).map { String($0.0) }
        let environment = Dictionary(names.map { ($0, "1") }) { $1 }
        #expect(!names.isEmpty)
        #expect(ArgumentParser(commands: CommandTable.all, environment: environment).warnings() == [])
    }

    @Test(
        "the service has an exposure of at most 3.0 in systemd-analyze security",
        .enabled(
            if: Installed.has("systemd-analyze"),
            "systemd-analyze is missing, so the unit was not checked: apt-get install systemd"
        )
    )
    func serviceIsSandboxed() async throws {
        let path = repository.appending(path: "deploy/systemd/reel.service").path
        let run = try await Shell.run("exec systemd-analyze security --offline=true --threshold=30 '\(path)'")
        #expect(run.code == 0, "\(run)")
    }

    @Test(
        "the proxy takes its file",
        .enabled(if: Installed.haproxy, "haproxy is missing, so its file was not checked: apt-get install haproxy")
    )
    func theProxyTakesIts() async throws {
        let path = repository.appending(path: "deploy/haproxy.cfg").path
        let told = "FRONT=127.0.0.1:1 STATS=127.0.0.1:2 GATEWAY_1=127.0.0.1:3 GATEWAY_2=127.0.0.1:4"
        let whole = try await Shell.run("exec env \(told) GATEWAY_3=127.0.0.1:5 haproxy -c -f '\(path)'")
        #expect(whole.code == 0, "\(whole)")
        #expect(!whole.errors.contains("WARNING"), "\(whole)")
        let missing = try await Shell.run("exec env \(told) haproxy -c -f '\(path)'")
        #expect(missing.code != 0, "a gateway without an address must be an error")
    }

    @Test(
        "the front: what is not ready keeps its sockets, what hangs does not, and no address takes all",
        .enabled(
            if: Installed.haproxy && Installed.python,
            "haproxy or python3 is missing, so the front was not run: apt-get install haproxy python3"
        )
    )
    func theFrontDoesAsItsFileSays() async throws {
        let path = repository.appending(path: "Tests/Deploy/front.py").path
        let run = try await Shell.run("exec /usr/bin/python3 '\(path)'", seconds: 180)
        #expect(run.code == 0, "\(run)")
    }

    @Test(
        "Prometheus takes its files",
        .enabled(
            if: Installed.promtool,
            "promtool is missing, so no file of it was checked: apt-get install prometheus"
        )
    )
    func prometheusTakesItsFiles() async throws {
        let folder = repository.appending(path: "deploy/prometheus").path
        let run = try await Shell.run("promtool check config '\(folder)/prometheus.yml'")
        #expect(run.code == 0, "\(run)")
        #expect((run.output + run.errors).contains("rules found"), "\(run)")
        let tests = try await Shell.run("promtool test rules '\(folder)/alerts_test.yml'", seconds: 180)
        #expect(tests.code == 0, "\(tests)")
        // No other program here reads the expressions of the board, so the test turns them into rules.
        // Grafana fills in its variables.
        let board = try JSONSerialization.jsonObject(with: Data(text("deploy/grafana/reel.json").utf8))
        let rules = expressions(in: board).enumerated().map { index, expression in
            let filled = expression.replacing("$__rate_interval", with: "1m")
            let quoted = filled.replacing("\"", with: "\\\"")
            return "      - record: board:\(index)\n        expr: \"\(quoted)\"\n"
        }
        let own = try TemporaryFolder(prefix: "reel-board-")
        let file = "groups:\n  - name: board\n    rules:\n" + rules.joined()
        try file.write(toFile: own.path + "/board.yml", atomically: true, encoding: .utf8)
        let asRules = try await Shell.run("promtool check rules '\(own.path)/board.yml'")
        #expect(asRules.code == 0, "\(asRules)")
    }

    @Test("the board asks one cluster, over windows that follow the scrape interval, at most every 10 s")
    func theBoardFitsAnyPrometheus() throws {
        let file = try text("deploy/grafana/reel.json")
        let board = try JSONSerialization.jsonObject(with: Data(file.utf8))
        for expression in expressions(in: board) {
            #expect(expression.contains("{job=\"$job\""), "\(expression)")
            #expect(!expression.contains(/\[[0-9]/), "\(expression)")
        }
        let seconds = try #require(file.firstMatch(of: /"refresh": "([0-9]+)s"/))
        #expect(try #require(Int(seconds.1)) >= 10)
    }

    @Test("every alert has a test, a severity, the job's name and a section of the runbook, in the same order")
    func everyAlertIsExplained() throws {
        let rules = try text("deploy/prometheus/alerts.yml")
        let tests = try text("deploy/prometheus/alerts_test.yml")
        let names = rules.matches(of: /- alert: (\w+)/).map { String($0.1) }
        #expect(names.count > 30)
        for name in names { #expect(tests.contains("alertname=\"\(name)\""), "\(name) has no test") }
        for expression in rules.matches(of: /expr: (.*)/) {
            #expect(expression.1.contains("{job=\"reel\""), "\(expression.1)")
        }
        #expect(rules.matches(of: /severity: (?:critical|warning)\n/).count == names.count)
        let pages = rules.matches(of: /runbook_url: docs\/operations\/runbook\.md#(\w+)/).map { String($0.1) }
        #expect(pages == names.map { $0.lowercased() })
        #expect(try text("docs/operations/runbook.md").matches(of: /\n## (\w+)\n/).map { String($0.1) } == names)
    }

    @Test("every metric that is shown or alerted on is counted") func everyMetricThatIs() async throws {
        let folder = try TemporaryFolder(prefix: "reel-metrics-")
        let nodes = [try NodeProcess.gateway(in: folder), try NodeProcess.snapshot(in: folder)]
        var counted: Set<String> = [
            "up", "haproxy_server_status", "haproxy_server_current_sessions",
            "haproxy_frontend_denied_connections_total", "haproxy_frontend_http_responses_total",
        ]
        for node in nodes {
            let answer = String(decoding: try await node.ask("GET", "/metrics").body, as: UTF8.self)
            for type in answer.matches(of: /# TYPE ([a-z_]+) ([a-z]+)/) {
                let parts = type.2 == "histogram" ? ["_bucket", "_sum", "_count"] : [""]
                counted.formUnion(parts.map { type.1 + $0 })
            }
        }
        // The nodes of this test have no Kafka and no TLS, so they lack these metrics. `MetricsPageTests`
        // compares the page with the code.
        let pages = try text("docs/reference/metrics.md").matches(of: /`(reel_(?:kafka|certificate)_[a-z_]+)`/)
        counted.formUnion(pages.map { String($0.1) })
        let board = try JSONSerialization.jsonObject(with: Data(text("deploy/grafana/reel.json").utf8))
        let rules = try text("deploy/prometheus/alerts.yml")
        let asked = expressions(in: board) + rules.matches(of: /expr: (.*)/).map { String($0.1) }
        #expect(asked.count > 10)
        for expression in asked {
            let names = expression.matches(of: /\b(?:reel|haproxy|process)_[a-z_]+|\bup\b/).map { String($0.0) }
            #expect(!names.isEmpty, "\(expression)")
            for name in names { #expect(counted.contains(name), "\(name) is in no node's /metrics") }
        }
    }

    private func packages(_ list: Substring) -> [String] { list.split { $0 == " " || $0 == "\n" }.map(String.init) }

    /// Returns every `expr` of a board.
    private func expressions(in json: Any) -> [String] {
        switch json {
        case let members as [String: Any]:
            members.flatMap { key, value in
                (key == "expr" ? [value as? String].compactMap { $0 } : []) + expressions(in: value)
            }
        case let items as [Any]: items.flatMap(expressions)
        default: []
        }
    }
}

/// Returns the text of a file of the repository.
func text(_ path: String) throws -> String {
    try String(contentsOf: repository.appending(path: path), encoding: .utf8)
}
