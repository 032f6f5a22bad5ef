import ReelCore
import ReelKafka
import ReelLog

extension Command {
    /// `reel topic create`: creates the topics of a log on Kafka.
    static let topicCreate = Command(
        "topic create",
        "create the topics of a log on Kafka",
        about: """
            Creates reel.control, reel.nodes and the topic of the first log, each with the settings that Reel needs, and
            makes that log the current one. An existing log is not changed; the command warns if it has another number
            of partitions. It can run several times at once. It needs the rights Create, Describe, Read and Write on the
            topics reel.*.
            """,
        settings: [LogArguments.log, KafkaArguments.properties, LogArguments.partitions, replication],
        required: [LogArguments.log],
        examples: [
            Example("reel topic create --log kafka:127.0.0.1:9092", "4 partitions"),
            Example(
                "reel topic create --log kafka:a.example:9092,b.example:9092 --partitions 16 --replication 3",
                "each event on three brokers"
            ),
        ]
    ) { options, console in
        let store = try KafkaArguments.store(
            try LogArguments.kafka(options),
            replicas: options[replication],
            console
        )
        defer { store.close() }
        let former = try store.current()
        let current = try store.begin(partitions: options[LogArguments.partitions] ?? 4)
        let verb = former == nil ? "created" : "exists already:"
        try console.print("\(verb) log \(current.epoch), \(current.partitions) partitions")
        if former == nil {
            let detail = "epoch \(current.epoch), \(current.partitions) partitions"
            console.audit("topic create", log: LogArguments.name(options), detail)
            warnOfFewCopies(store, options, console)
        }
        if let wanted = options[LogArguments.partitions], wanted != current.partitions {
            console.note(
                "reel: warning: --partitions is \(wanted), but the log has \(current.partitions);"
                    + " `reel epoch new --partitions \(wanted)` changes it"
            )
        }
        return .done
    }

    /// `reel topic show`: the topics of a log on Kafka.
    static let topicShow = Command(
        "topic show",
        "show the topics of a log on Kafka",
        about: """
            Shows the current log, and its topics with the settings that Reel depends on. For each partition of the log,
            it shows the leader, the number of replicas, and the first and last seq that can be read.
            """,
        settings: [LogArguments.log, KafkaArguments.properties, CommonSettings.json],
        required: [LogArguments.log],
        examples: [
            Example("reel topic show --log kafka:127.0.0.1:9092", "as tables"),
            Example("reel topic show --log kafka:127.0.0.1:9092 --json", "one line of JSON for each topic"),
        ]
    ) { options, console in
        let store = try KafkaArguments.store(try LogArguments.kafka(options), console)
        defer { store.close() }
        let current = try KafkaArguments.current(store)
        let topics = try store.topics()
        if options[CommonSettings.json] {
            for topic in topics { try console.write(topic.json) }
            return .done
        }
        try console.print(page: "epoch \(current.epoch), \(current.partitions) partitions, number \(current.number)\n")
        var table = TextTable(
            "TOPIC",
            "PARTITIONS",
            "REPLICAS",
            "MIN IN SYNC",
            "CLEANUP",
            "RETENTION",
            "MAX BYTES",
            numbers: ["PARTITIONS", "REPLICAS", "MIN IN SYNC", "RETENTION", "MAX BYTES"]
        )
        for topic in topics {
            guard let facts = topic.facts else {
                table.add(topic.name, "missing")
                continue
            }
            func setting(_ name: String) -> String { facts.settings?[name] ?? "?" }
            table.add(
                topic.name,
                "\(facts.partitions.count)",
                "\(facts.replicas)",
                setting("min.insync.replicas"),
                setting("cleanup.policy"),
                setting("cleanup.policy") == "compact" ? "-" : setting("retention.ms"),
                setting("max.message.bytes")
            )
        }
        for line in table.lines { try console.print(line) }
        guard let facts = topics.first?.facts else { return .done }
        let log = try store.open(current.epoch)
        defer { log.close() }
        table = TextTable(
            "PARTITION",
            "LEADER",
            "REPLICAS",
            "IN SYNC",
            "FIRST",
            "LAST",
            numbers: ["PARTITION", "LEADER", "REPLICAS", "IN SYNC", "FIRST", "LAST"]
        )
        for (number, partition) in facts.partitions.enumerated() {
            let bounds = partition.leader == nil ? nil : try log.bounds(number)
            table.add(
                "\(number)",
                partition.leader.map { "\($0)" } ?? "-",
                "\(partition.replicas)",
                "\(partition.inSync)",
                bounds.map { "\($0.first)" } ?? "-",
                bounds.map { "\($0.last)" } ?? "-"
            )
        }
        try console.print()
        for line in table.lines { try console.print(line) }
        return .done
    }

    /// `reel topic check`: a check of the topics of a log on Kafka.
    static let topicCheck = Command(
        "topic check",
        "check the brokers and topics of a log on Kafka",
        about: """
            Every node makes the same checks at its start: the brokers run Kafka 3.7 or newer, the topics exist, and
            every setting that could lose events is right. Prints a line for each problem, with the command that solves
            it. The exit code is 4 if a problem prevents Reel from running, otherwise 0.
            """,
        settings: [LogArguments.log, KafkaArguments.properties],
        required: [LogArguments.log],
        examples: [
            Example("reel topic check --log kafka:127.0.0.1:9092", "before the start of the first node")
        ]
    ) { options, console in
        let store = try KafkaArguments.store(try LogArguments.kafka(options), console)
        defer { store.close() }
        let findings = try store.check()
        for finding in findings { try console.print("\(finding.weight.rawValue): \(finding)") }
        let isBad = findings.contains { $0.weight == .error }
        if findings.isEmpty { try console.print("found no problem") }
        return isBad ? .badData : .done
    }

    static let replication = Setting<Int?>.number(
        "replication",
        "N",
        1...32,
        "number of replicas; default: as many as before; of a first log 3, or all brokers if fewer"
    )

    /// Prints a warning if the log has fewer than three replicas and --replication was not given.
    static func warnOfFewCopies(_ store: KafkaLogStore, _ options: Options, _ console: Console) {
        guard options[replication] == nil, let facts = (try? store.topics())?.first?.facts, facts.replicas < 3 else {
            return
        }
        console.note(
            "reel: warning: each event is on \(counted(facts.replicas, "broker")), expected are 3: no more were alive,"
                + " or the log before had no more; `reel epoch new --replication 3` changes it"
        )
    }
}

extension KafkaLogStore.Topic {
    /// The topic and its settings, as a line of JSON.
    fileprivate var json: [UInt8] {
        var line = JSONObjectWriter()
        line.member("topic", name)
        if let facts {
            line.objects("partitions", facts.partitions.enumerated()) { object, partition in
                object.member("partition", partition.offset)
                object.member("leader", partition.element.leader ?? -1)
                object.member("replicas", partition.element.replicas)
                object.member("in_sync", partition.element.inSync)
            }
            line.object("settings") { object in
                for (name, value) in (facts.settings ?? [:]).sorted(by: { $0.key < $1.key }) {
                    object.member(named: name) { $0.append(quoted: value) }
                }
            }
        } else {
            line.member("missing", true)
        }
        return line.finishLine()
    }
}
