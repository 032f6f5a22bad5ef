import Foundation
import Testing

@testable import ReelTool

/// Tests that docker-compose.yml, the files that it mounts, and the program agree. There is no Docker here, so the test
/// compares the text of the files.
@Suite struct ComposeTests {
    let compose: YAML
    let services: [String: YAML]

    init() throws {
        compose = try YAML(text("docker-compose.yml"))
        services = compose["services"]?.members ?? [:]
    }

    /// The services that run `reel`.
    private var nodes: [String: YAML] { services.filter { $0.value["image"]?.string == "reel" } }

    private func environment(of service: YAML) -> [String: String] {
        (service["environment"]?.members ?? [:]).compactMapValues(\.string).mapValues(defaults)
    }

    @Test("the cluster is there") func theClusterIsThere() {
        for name in ["kafka-1", "kafka-2", "kafka-3", "topics", "gateway-1", "gateway-2", "gateway-3", "snapshot-1"] {
            #expect(services[name] != nil, "\(name)")
        }
        #expect(Set(nodes.keys).isSuperset(of: ["topics", "gateway-3", "snapshot-2"]))
    }

    @Test("one service builds the image and the others take it from there") func oneServiceBuildsThe() {
        #expect(nodes.filter { $0.value["build"] != nil }.map(\.key) == ["topics"])
        for (name, node) in nodes { #expect(node["pull_policy"]?.string == "never", "\(name)") }
    }

    @Test("every nodes words and variables are understood") func everyNodesWordsAnd() throws {
        for (name, service) in nodes {
            let words = try #require(service["command"]?.strings, "\(name)").map(defaults)
            let parser = ArgumentParser(commands: CommandTable.all, environment: environment(of: service))
            guard case .run = try parser.request(words) else {
                Issue.record("\(name) shows help")
                continue
            }
            #expect(parser.warnings() == [], "\(name)")
        }
    }

    @Test("every node advertises the URL at which its peers reach it") func nodesAdvertiseURLs() throws {
        for (name, service) in nodes where ["gateway", "snapshot"].contains(service["command"]?.strings.first) {
            let variables = environment(of: service)
            let own = try NodeAddress(try #require(variables["REEL_NODE_URL"]))
            #expect(own.host == name)
            #expect(variables["REEL_LISTEN"] == "0.0.0.0:\(own.port)")
        }
    }

    @Test("every name of another service is one") func everyNameOfAnother() throws {
        for (name, service) in services {
            let waited = service["depends_on"]?.members.keys.map(\.self) ?? []
            let named = environment(of: service).values.flatMap { value in
                value.matches(of: /([a-z]+-?[0-9]?):(?:7350|7349|9092|9093)\b/).map { String($0.1) }
            }
            for other in waited + named where other != "kafka" {
                #expect(services[other] != nil, "\(name) names \(other)")
            }
        }
        for target in try YAML(text("deploy/prometheus/targets.yml")).items.flatMap({ $0["targets"]?.strings ?? [] }) {
            let parts = target.split(separator: ":")
            let service = try #require(services[String(parts[0])], "\(target)")
            let ports = environment(of: service).filter {
                ["REEL_LISTEN", "REEL_ADMIN_LISTEN", "STATS"].contains($0.key)
            }
            #expect(ports.values.contains { $0.hasSuffix(":\(parts[1])") }, "\(target) is not listened on")
        }
    }

    @Test("every mounted file and volume exists") func everyMountedFileAnd() {
        let volumes = compose["volumes"]?.members ?? [:]
        for (name, service) in services {
            for mount in service["volumes"]?.strings ?? [] {
                let source = String(mount.prefix { $0 != ":" })
                let isThere =
                    source.hasPrefix("./")
                    ? FileManager.default.fileExists(atPath: repository.appending(path: source).path)
                    : volumes[source] != nil
                #expect(isThere, "\(name) mounts \(source)")
            }
        }
    }

    @Test("the brokers differ only in their ids and addresses") func brokersDifferByIdentity() throws {
        let voters = try #require(services["kafka-1"].map(environment)?["KAFKA_CONTROLLER_QUORUM_VOTERS"])
        for number in 1...3 {
            let variables = environment(of: try #require(services["kafka-\(number)"]))
            #expect(variables["KAFKA_NODE_ID"] == "\(number)")
            #expect(variables["KAFKA_ADVERTISED_LISTENERS"] == "BROKER://kafka-\(number):9092")
            #expect(voters.contains("\(number)@kafka-\(number):9093"))
        }
        let common = try text("deploy/kafka/server.properties")
        for line in ["broker.session.timeout.ms=2000", "broker.heartbeat.interval.ms=500", "min.insync.replicas=2"] {
            #expect(common.contains("\n\(line)\n"))
        }
    }

    /// Kafka ignores an unknown key without an error.
    @Test("every key of the brokers is one of kafkas") func everyKeyOfThe() throws {
        let common = keys(try text("deploy/kafka/server.properties"))
        #expect(
            common.sorted() == [
                "auto.create.topics.enable", "broker.heartbeat.interval.ms", "broker.session.timeout.ms",
                "controller.listener.names", "controller.quorum.election.timeout.ms",
                "controller.quorum.fetch.timeout.ms", "default.replication.factor", "inter.broker.listener.name",
                "listener.security.protocol.map", "min.insync.replicas", "offsets.topic.num.partitions",
                "offsets.topic.replication.factor", "process.roles", "transaction.state.log.min.isr",
                "transaction.state.log.num.partitions", "transaction.state.log.replication.factor",
                "unclean.leader.election.enable",
            ]
        )
        let own = ["advertised.listeners", "controller.quorum.voters", "listeners", "log.dirs", "node.id"]
        let local = try text("deploy/local/up").components(separatedBy: "PROPERTIES\n")
        try #require(local.count == 3)
        #expect(keys(local[1]).sorted() == own)
        for number in 1...3 {
            let variables = environment(of: try #require(services["kafka-\(number)"])).keys
            let told = variables.filter { $0.hasPrefix("KAFKA_") && $0 != "KAFKA_HEAP_OPTS" }.map { variable in
                variable.dropFirst("KAFKA_".count).lowercased().replacing("_", with: ".")
            }
            #expect(told.sorted() == own)
        }
    }

    @Test("only the loopback is open to the outside") func onlyTheLoopbackIs() {
        for port in services.values.flatMap({ $0["ports"]?.strings ?? [] }) {
            #expect(port.hasPrefix("127.0.0.1:"), "\(port)")
        }
    }

    @Test("the compose file publishes exactly the documented ports") func publishesDocumentedPorts() throws {
        let published = services.mapValues { ($0["ports"]?.strings ?? []).map(defaults) }.filter { !$0.value.isEmpty }
        // These are the default ports of Prometheus and Grafana.
        #expect(
            published == [
                "front": ["127.0.0.1:7350:7350"], "prometheus": ["127.0.0.1:9090:9090"],
                "grafana": ["127.0.0.1:3000:3000"],
            ]
        )
        for name in ["prometheus", "grafana"] { #expect(services[name]?["command"] == nil) }
        #expect(environment(of: try #require(services["front"]))["FRONT"] == "*:7350")
        for address in ["http://127.0.0.1:7350", "http://127.0.0.1:3000"] {
            #expect(try text("deploy/README.md").contains(address))
        }
    }

    @Test("the board is where grafana looks and asks Prometheus") func theBoardIsWhere() throws {
        let grafana = try #require(services["grafana"])
        let mounts = (grafana["volumes"]?.strings ?? []).map { $0.split(separator: ":").map { String($0) } }
        let places = Dictionary(mounts.map { ($0[0], $0[1]) }) { first, _ in first }
        let board = try #require(places["./deploy/grafana/reel.json"])
        #expect(environment(of: grafana)["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"] == board)
        let providers = try YAML(text("deploy/grafana/dashboards.yml"))["providers"]?.items ?? []
        #expect(providers.compactMap { $0["options"]?["path"]?.string } == ["/etc/grafana/provisioning/dashboards"])
        #expect(board.hasPrefix("/etc/grafana/provisioning/dashboards/"))
        #expect(places["./deploy/grafana/dashboards.yml"]?.hasPrefix("/etc/grafana/provisioning/dashboards/") == true)
        #expect(places["./deploy/grafana/datasource.yml"]?.hasPrefix("/etc/grafana/provisioning/datasources/") == true)
        let sources = try YAML(text("deploy/grafana/datasource.yml"))["datasources"]?.items ?? []
        let source = try #require(sources.first)
        let url = try #require(source["url"]?.string?.wholeMatch(of: /http:\/\/([a-z]+):([0-9]+)/))
        let asked = try #require(services[String(url.1)], "there is no service \(url.1)")
        #expect(asked["image"]?.string?.hasPrefix("prom/prometheus:") == true)
        let ports = asked["ports"]?.strings ?? []
        #expect(ports.contains { $0.hasSuffix(":\(url.2)") }, "\(ports)")
        let panels = try text("deploy/grafana/reel.json")
        let uids = panels.matches(of: /"type": "prometheus", "uid": "([^"]*)"/)
        #expect(!uids.isEmpty)
        for uid in uids { #expect(uid.1 == "${datasource}") }
        let chosen = panels.firstMatch(of: /"current": \{"text": "[^"]*", "value": "([^"]*)"\}/)
        #expect(chosen.map { String($0.1) } == source["uid"]?.string)
    }

    @Test("the front gets exactly the variables that its configuration reads") func frontGetsVariables() throws {
        let file = try text("deploy/haproxy.cfg")
        let preset = file.matches(of: /presetenv ([A-Z0-9_]+)\s/).map { String($0.1) }
        let asked = Set(file.matches(of: /\$\{([A-Z0-9_]+)\}/).map { String($0.1) }).subtracting(preset)
        let told = Set(environment(of: try #require(services["front"])).keys)
        #expect(asked == told)
        let local = try text("deploy/local/up")
        for name in asked { #expect(local.contains(" \(name)="), "deploy/local/up says no \(name)") }
    }

    @Test("gateways trust the PROXY header of the front alone")
    func gatewaysTrustFrontAlone() throws {
        let front = try #require(services["front"]?["networks"]?["default"]?["ipv4_address"]?.string)
        for (name, service) in services where name.hasPrefix("gateway-") {
            #expect(environment(of: service)["REEL_TRUSTED_PROXIES"] == front, "\(name)")
        }
    }

    @Test("every container has limits, no capability, a bounded journal and a pinned image")
    func everyContainerIsBounded() {
        for (name, service) in services {
            for limit in ["mem_limit", "cpus", "pids_limit", "logging"] {
                #expect(service[limit] != nil, "\(name) has no \(limit)")
            }
            #expect(service["cap_drop"]?.strings == ["ALL"], "\(name)")
            #expect(service["security_opt"]?.strings == ["no-new-privileges:true"], "\(name)")
            let image = service["image"]?.string ?? ""
            #expect(image == "reel" || image.contains(/:v?[0-9]+\.[0-9]+\.[0-9]+$/), "\(name) runs \(image)")
        }
        for (name, node) in nodes { #expect(node["read_only"]?.string == "true", "\(name)") }
    }

    @Test("the front has every gateway as a backend") func frontHasAllGateways() throws {
        let front = environment(of: try #require(services["front"])).values
        for name in services.keys where name.hasPrefix("gateway-") { #expect(front.contains("\(name):7350")) }
    }

    @Test(
        "another reader sees the same",
        .enabled(
            if: Installed.pythonYAML,
            "python3-yaml is missing, so no other YAML reader was asked: apt-get install python3-yaml"
        )
    )
    func anotherReaderSeesThe() async throws {
        for path in [
            "docker-compose.yml", "deploy/prometheus/prometheus.yml", "deploy/prometheus/targets.yml",
            "deploy/grafana/datasource.yml", "deploy/grafana/dashboards.yml",
        ] {
            let program = """
                import json, sys, yaml
                def plain(x):
                    if isinstance(x, dict): return {str(k): plain(v) for k, v in x.items()}
                    if isinstance(x, list): return [plain(v) for v in x]
                    return "" if x is None else str(x).lower() if isinstance(x, bool) else str(x)
                print(json.dumps(plain(yaml.safe_load(open(sys.argv[1])))))
                """
            let run = try await Shell.run(
                "exec \"$0\" \"$@\"",
                [
                    "/usr/bin/python3", "-c", program, repository.appending(path: path).path,
                ]
            )
            #expect(run.code == 0, "\(run)")
            let other = try JSONSerialization.jsonObject(with: Data(run.output.utf8))
            #expect(YAML(json: other) == (try YAML(text(path))), "\(path)")
        }
    }

    /// Returns the keys of properties with one `key=value` per line.
    private func keys(_ properties: String) -> [String] {
        let lines = properties.split(separator: "\n").filter { !$0.hasPrefix("#") }
        return lines.map { line in String(line.prefix { $0 != "=" }) }
    }

    /// Replaces each `${NAME:-default}` by its default.
    private func defaults(_ word: String) -> String {
        word.replacing(/\$\{[A-Z_]+:-([^}]*)\}/) { $0.1 }
    }
}

extension YAML {
    fileprivate init(json: Any) {
        switch json {
        case let members as [String: Any]: self = .map(members.mapValues { YAML(json: $0) })
        case let items as [Any]: self = .list(items.map { YAML(json: $0) })
        default: self = .text("\(json)")
        }
    }
}
