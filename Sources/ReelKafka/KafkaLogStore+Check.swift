internal import ReelCore
public import ReelLog

// Looking at brokers and topics before they are trusted.
extension KafkaLogStore {
    /// One topic, with its role.
    public struct Topic: Equatable, Sendable {
        /// What the topic is for.
        public var role: TopicRole
        /// Its name.
        public var name: String
        /// What the brokers say of it; nil: none that answers knows of one of this name.
        public var facts: TopicFacts?
    }

    /// The topics that the current log is made of: its own, `reel.control` and `reel.nodes`. Without a current log only
    /// the two that all epochs share.
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

    /// All that is not as it must be: each broker's release, topics that are missing, and their settings. Errors first;
    /// brokers that are too old are not asked further.
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

    /// What `check` finds by which acknowledged events can be lost.
    public func complaints() throws(LogError) -> [String] {
        try check().filter { $0.weight == .error }.map(\.description)
    }

    /// What there is to say where no log is the current one: none was made yet, or the topic that names it was lost.
    public func absence() throws(LogError) -> KafkaFinding {
        let written = try writtenLogs()
        return written.isEmpty ? .noLog(bootstrap) : .controlIsLost(written)
    }

    /// The topics that hold a log's records, whatever `reel.control` says.
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
            repair: "reel epoch new --from-snapshot, which goes on with the log that the snapshots are of"
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
