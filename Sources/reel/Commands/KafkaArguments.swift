import ReelKafka
import ReelLog
import ReelNet
import ReelNode

/// The settings of a log on Kafka: `--log kafka:…`, and every property of the client that may be set.
enum KafkaArguments {
    static let properties = SettingFamily(
        "kafka.NAME",
        "VALUE",
        KafkaProperty.all.map(KafkaSetting.init),
        "a property of the Kafka client, such as --kafka.security.protocol=ssl; see kafka.md"
    )

    /// The properties that were given, by name.
    static func properties(_ options: Options) throws(CommandError) -> [String: String] {
        var given: [String: String] = [:]
        for (setting, value) in options[properties] {
            let property = setting.property
            let twin = property.original ?? property.name
            if let other = given.updateValue(value, forKey: twin), other != value {
                throw CommandError(.usage, "--\(setting.name) and --kafka.\(twin) are one property with two names")
            }
        }
        return given
    }

    /// How to talk to the brokers of `HOST:PORT,HOST:PORT`.
    static func configuration(_ options: Options, brokers list: Substring) throws(CommandError) -> KafkaConfiguration {
        let brokers = list.split(separator: ",", omittingEmptySubsequences: false).map(String.init)
        for broker in brokers {
            guard let (host, port) = SocketAddress.split(broker), !host.isEmpty, port > 0 else {
                throw CommandError(
                    .usage,
                    "--log names the broker `\(broker)`; expected is HOST:PORT, such as kafka:a.example:9092"
                )
            }
        }
        return KafkaConfiguration(brokers: brokers, properties: try properties(options))
    }

    /// The store of these brokers. `logger`: the node's, for a node.
    static func store(
        _ configuration: KafkaConfiguration,
        replicas: Int? = nil,
        _ console: Console,
        logger: Logger? = nil
    ) throws -> KafkaLogStore {
        let debugs = configuration.properties["debug"] != nil
        return try KafkaLogStore(
            configuration,
            replicas: replicas,
            log: LogReports.kafka(console, logger, debugs: debugs)
        )
    }

    /// The current log; says why, where there is none.
    static func current(_ store: KafkaLogStore) throws -> CurrentLog {
        guard let current = try store.current() else { throw CommandError(.badData, "\(try store.absence())") }
        return current
    }

    /// Opens the current log. `checks`: brokers and topics are looked at before; what is wrong ends the command, what
    /// an operator should know is said.
    static func open(
        _ configuration: KafkaConfiguration,
        partitions: Int?,
        checks: Bool,
        _ console: Console,
        logger: Logger? = nil
    ) throws -> any EventLog {
        let store = try store(configuration, console, logger: logger)
        defer { store.close() }
        if checks {
            let findings = try store.check()
            let errors = findings.filter { $0.weight == .error }
            if let first = errors.first {
                let others = errors.count > 1 ? " (and \(errors.count - 1) more, see `reel topic check`)" : ""
                throw CommandError(.badData, "\(first)\(others)")
            }
            for finding in findings where finding.weight == .warning { console.note("reel: warning: \(finding)") }
        }
        let current = try current(store)
        if let partitions, partitions != current.partitions {
            throw CommandError(
                .usage,
                "--partitions is \(partitions), but the log has \(current.partitions); `reel epoch new --partitions"
                    + " \(partitions)` changes it"
            )
        }
        return try store.open(current.epoch)
    }
}

/// A property of the Kafka client as a setting of the command line.
struct KafkaSetting: AnySetting {
    let property: KafkaProperty

    var name: String { "kafka." + property.name }
    var valueName: String? { "VALUE" }
    var fallbackText: String? { nil }
    var repeats: Bool { false }
    var help: String { "a property of the Kafka client" }
    var expected: String { property.expected }

    func value(of texts: [String]) -> (any Sendable)? {
        texts.last.flatMap { property.complaint(about: $0) == nil ? $0 : nil }
    }

    func complaint(about texts: [String]) -> String {
        texts.last.flatMap(property.complaint) ?? "is empty"
    }
}
