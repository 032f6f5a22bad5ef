internal import ReelCore
public import ReelLog

// Checks of brokers and topics before they are used.
extension KafkaLogStore {
    /// A topic with its role.
    public struct Topic: Equatable, Sendable {
        /// The role of the topic.
        public var role: TopicRole
        /// The name of the topic.
        public var name: String
        /// The brokers' description of the topic; nil: no broker that answers knows it.
        public var facts: TopicFacts?
    }

    /// Returns the topics of the current log: its own, `reel.control` and `reel.nodes`. Without a current log only the
    /// two that all epochs share.
    public func topics() throws(LogError) -> [Topic] {
        var roles: [(TopicRole, String)] = []
        if let current = try current() {
            roles.append((.data(partitions: current.partitions), TopicRole.name(of: current.epoch)))
        }
        roles += [(.control, TopicRole.controlName), (.nodes, TopicRole.nodesName)]
        var topics: [Topic] = []
        for (role, name) in roles {
            var facts = try admin.topic(name)
            if facts != nil { facts?.settings = try admin.settings(of: name) }
            topics.append(Topic(role: role, name: name, facts: facts))
        }
        return topics
    }

    /// Returns all problems: old releases of brokers, missing topics, and wrong settings. Errors come first. If a
    /// broker is too old, nothing else is checked.
    public func check() throws(LogError) -> [KafkaFinding] {
        let versions = try admin.brokerVersions()
        let old = versions.filter { !$0.isEnough }
        guard old.isEmpty else { return old.map { .tooOld($0) } }
        var findings: [KafkaFinding] = versions.isEmpty ? [.noVersion] : []
        guard try current() != nil else { return [try absence()] + findings }
        for topic in try topics() {
            if let facts = topic.facts {
                findings += facts.findings(as: topic.role, bootstrap: bootstrap)
            } else if topic.role.isData {
                findings.append(.dataIsMissing(topic.name))
            } else {
                findings.append(.isMissing(topic.name, bootstrap))
            }
        }
        return findings.filter { $0.weight == .error } + findings.filter { $0.weight == .warning }
    }

    /// Returns the findings of `check` that can lose acknowledged events.
    public func complaints() throws(LogError) -> [String] {
        try check().filter { $0.weight == .error }.map(\.description)
    }

    /// Returns the finding for a store without a current log: none was created yet, or the topic that names it was
    /// lost.
    public func absence() throws(LogError) -> KafkaFinding {
        let written = try writtenLogs()
        return written.isEmpty ? .noLog(bootstrap) : .controlIsLost(written)
    }

    /// Returns the topics that hold records of a log, independent of `reel.control`.
    func writtenLogs() throws(LogError) -> [String] {
        var logs: [String] = []
        for name in try admin.topicNames() where TopicRole.epoch(ofTopic: name) != nil {
            if try admin.wasWritten(name) { logs.append(name) }
        }
        return logs
    }

    private var bootstrap: String { configuration.brokers.joined(separator: ",") }
}

extension KafkaFinding {
    fileprivate static func tooOld(_ version: BrokerVersion) -> KafkaFinding {
        KafkaFinding(
            weight: .error,
            subject: "broker \(version.broker)",
            text: "it is of Kafka \(version.releases) (it takes Fetch up to version \(version.fetch)),"
                + " wanted is 3.7 or newer",
            repair: nil
        )
    }

    fileprivate static let noVersion = KafkaFinding(
        weight: .warning,
        subject: "broker",
        text: "none said which release it is, wanted is Kafka 3.7 or newer",
        repair: nil
    )

    fileprivate static func noLog(_ bootstrap: String) -> KafkaFinding {
        KafkaFinding(
            weight: .error,
            subject: TopicRole.controlName,
            text: "there is no log at \(bootstrap) yet",
            repair: "reel topic create --log kafka:\(bootstrap)"
        )
    }

    fileprivate static func controlIsLost(_ logs: [String]) -> KafkaFinding {
        KafkaFinding(
            weight: .error,
            subject: TopicRole.controlName,
            text: "the topic is missing or empty, and no log is the current one, though there are records in"
                + " \(logs.joined(separator: ", "))",
            repair: "reel epoch new --from-snapshot, which continues the log of the snapshots"
        )
    }

    fileprivate static func isMissing(_ topic: String, _ bootstrap: String) -> KafkaFinding {
        KafkaFinding(
            weight: .error,
            subject: topic,
            text: "the topic is missing",
            repair: "reel topic create --log kafka:\(bootstrap)"
        )
    }

    fileprivate static func dataIsMissing(_ topic: String) -> KafkaFinding {
        KafkaFinding(
            weight: .error,
            subject: topic,
            text:
                "the topic is missing, though \(TopicRole.controlName) names it: its events are lost",
            repair: "reel epoch new --from-snapshot"
        )
    }
}
