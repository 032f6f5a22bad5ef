import ReelKafka
import ReelLog
import ReelNet
import ReelNode

/// The settings of a log on Kafka: `--log kafka:…`, and every property of the client that can be set.
enum KafkaArguments {
    static let properties = SettingFamily(
        "kafka.NAME",
        "VALUE",
        KafkaProperty.all.map(KafkaSetting.init),
        "property of the Kafka client, such as --kafka.security.protocol=ssl; see kafka.md"
    )

    /// Returns the given properties, by name.
    ///
    /// - Throws: a `CommandError` with exit code 2 if two names of one property have different values.
    static func properties(_ options: Options) throws(CommandError) -> [String: String] {
        var given: [String: String] = [:]
        for (setting, value) in options[properties] {
            let property = setting.property
            let twin = property.original ?? property.name
            if let other = given.updateValue(value, forKey: twin), other != value {
                throw CommandError(
                    .usage,
                    "--\(setting.name) and --kafka.\(twin) are two names of one property; give only one of them"
                )
            }
        }
        return given
    }

    /// Returns the configuration of the Kafka client. `list`: the brokers, as `HOST:PORT,HOST:PORT`.
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

    /// Opens the store of logs on the brokers. `logger`: the logger of a node; nil for other commands.
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

    /// Returns the current log of `store`.
    ///
    /// - Throws: a `CommandError` with exit code 4 and the reason if there is none.
    static func current(_ store: KafkaLogStore) throws -> CurrentLog {
        guard let current = try store.current() else { throw CommandError(.badData, "\(try store.absence())") }
        return current
    }

    /// Opens the current log.
    ///
    /// - Parameters:
    ///   - configuration: the brokers and the properties of the client.
    ///   - partitions: the number of partitions that the log must have; nil if any number is allowed.
    ///   - checks: true to check the settings of brokers and topics first. An error ends the command; warnings are
    ///     printed.
    ///   - console: where warnings and lines of the client go.
    ///   - logger: the logger of a node; nil for other commands.
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
    var help: String { "property of the Kafka client" }
    var expected: String { property.expected }

    func value(of texts: [String]) -> (any Sendable)? {
        texts.last.flatMap { property.complaint(about: $0) == nil ? $0 : nil }
    }

    func complaint(about texts: [String]) -> String {
        texts.last.flatMap(property.complaint) ?? "is empty"
    }
}
