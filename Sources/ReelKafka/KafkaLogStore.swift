internal import Glibc
internal import ReelBase
public import ReelCore
public import ReelLog

/// The logs of a Kafka cluster, one per epoch. Each epoch has its own topic. `reel.control` says which is the current
/// one, and `reel.nodes` holds the announcements of the nodes.
///
/// Every call blocks until the brokers have answered. If none answers, it fails within about five seconds.
public final class KafkaLogStore: LogStore {
    let configuration: KafkaConfiguration
    private let replicas: Int?
    private let log: KafkaLogLine
    let admin: KafkaAdmin
    private let control: ControlTopic
    private let nodes: NodeTopic

    /// How long a new topic may be unknown to a broker, in milliseconds.
    private static let settlingMs: Int64 = 15_000

    /// Creates a store for these brokers.
    ///
    /// - Parameters:
    ///   - configuration: The brokers and properties.
    ///   - replicas: The number of replicas of new topics; nil: as many as the previous log has. The first log then has
    ///     3, or as many as there are brokers.
    ///   - log: Called with librdkafka's log lines.
    /// - Throws: `bad_request` if librdkafka refuses a property.
    public init(
        _ configuration: KafkaConfiguration,
        replicas: Int? = nil,
        log: @escaping KafkaLogLine
    ) throws(LogError) {
        self.configuration = configuration
        self.replicas = replicas
        self.log = log
        admin = try KafkaAdmin(configuration)
        control = ControlTopic(configuration, admin: admin, log: log)
        nodes = NodeTopic(configuration, log: log)
    }

    deinit {
        close()
    }

    /// Returns the current log; nil: there is none yet.
    public func current() throws(LogError) -> CurrentLog? {
        try control.current()
    }

    /// Returns the epochs of all logs that these brokers keep, independent of `reel.control`.
    public func epochs() throws(LogError) -> [Epoch] {
        try admin.topicNames().compactMap { TopicRole.epoch(ofTopic: $0) }
    }

    /// Creates the topics of a new epoch, and with the first one the topics that all epochs share; see
    /// `LogStore.create`. Throws if there are too few brokers for the replicas of the previous log.
    public func create(_ epoch: Epoch, partitions: Int) throws(LogError) {
        guard partitions > 0 else { throw LogError(.badRequest, "found \(partitions) partitions, expected 1 or more") }
        try make(TopicRole.controlName, .control)
        try make(TopicRole.nodesName, .nodes)
        try make(TopicRole.name(of: epoch), .data(partitions: partitions))
    }

    /// Creates the first log of these brokers, with a random epoch and all topics that it needs, and makes it the
    /// current one. Several callers may do this at the same time.
    ///
    /// If there is a current log already, that log is returned, and only a missing `reel.nodes` is created. The lost
    /// topic of an epoch is never created again.
    ///
    /// - Throws: `damaged` if there is no current log, but there are records of one.
    public func begin(partitions: Int) throws(LogError) -> CurrentLog {
        if let current = try current() {
            try make(TopicRole.nodesName, .nodes)
            return current
        }
        guard try writtenLogs().isEmpty else {
            // The records may be those of another caller that was faster.
            if let current = try current() { return current }
            throw LogError(.damaged, try absence().description)
        }
        let first = CurrentLog(epoch: .random(), partitions: partitions, number: 0)
        try create(first.epoch, partitions: partitions)
        do throws(LogError) {
            try advance(to: first)
            return first
        } catch {
            guard error.code == .conflict, let current = try current() else { throw error }
            // Another caller was faster; the topic that was created here was never used.
            try admin.delete(TopicRole.name(of: first.epoch))
            return current
        }
    }

    /// Creates a topic with all its settings, unless there is one of this name.
    private func make(_ name: String, _ role: TopicRole) throws(LogError) {
        if try admin.hearsay(of: name).said == nil {
            let copies = try copies()
            _ = try admin.create(
                name,
                partitions: role.partitions,
                replicas: copies.replicas,
                settings: role.settings(copies)
            )
        }
        let found = try settled(name)
        guard found.partitions.count == role.partitions else {
            throw LogError(
                .badRequest,
                "the topic \(name) has \(found.partitions.count) partitions, expected \(role.partitions)"
            )
        }
    }

    /// Returns the number of replicas for new topics. A broker that is down does not reduce it.
    private func copies() throws(LogError) -> TopicCopies {
        let (former, alive) = (try formerCopies(), try admin.brokerCount())
        let copies =
            if let replicas {
                former?.with(replicas: replicas) ?? TopicCopies(replicas: replicas)
            } else {
                former ?? TopicCopies(replicas: min(3, alive))
            }
        guard copies.inSync <= alive else {
            throw LogError(
                .logUnavailable,
                "found \(alive) of the brokers, expected are \(copies.inSync) or more, which must have a record before"
                    + " it is acked: \(KafkaAdmin.moreBrokers)"
            )
        }
        return copies
    }

    /// Returns the replicas of the current log. If it is lost, those of `reel.control`; if both are lost, those of any
    /// log.
    private func formerCopies() throws(LogError) -> TopicCopies? {
        if let control = try copies(of: TopicRole.controlName) {
            guard let current = try current() else { return control }
            return try copies(of: TopicRole.name(of: current.epoch)) ?? control
        }
        var logs: [TopicCopies] = []
        for name in try admin.topicNames() where TopicRole.epoch(ofTopic: name) != nil {
            if let copies = try copies(of: name) { logs.append(copies) }
        }
        return logs.max { $0.replicas < $1.replicas }
    }

    /// Returns the replicas of a topic; nil: there is no such topic.
    private func copies(of topic: String) throws(LogError) -> TopicCopies? {
        guard var facts = try admin.topic(topic) else { return nil }
        facts.settings = try admin.settings(of: topic)
        return TopicCopies(of: facts)
    }

    /// Waits until all brokers know a new topic and it has leaders. A client that has the partitions from one broker,
    /// and then asks a broker that does not know the topic yet, would consider it deleted.
    private func settled(_ name: String) throws(LogError) -> TopicFacts {
        let all = try KafkaAdmin(configuration, isConnectedToAll: true)
        var knowing: Set<Int32> = []
        let end = MonotonicClock.nowMs() + Self.settlingMs
        while true {
            let heard = try all.hearsay(of: name)
            let found = heard.said.flatMap { $0.partitions.allSatisfy { $0.leader != nil } ? $0 : nil }
            if found == nil { knowing.remove(heard.broker) } else { knowing.insert(heard.broker) }
            if let found, knowing.isSuperset(of: heard.brokers) { return found }
            guard MonotonicClock.nowMs() < end else {
                // A broker that does not answer cannot give a wrong answer.
                if let found { return found }
                throw LogError(.logUnavailable, "the topic \(name) was made, but no broker leads it")
            }
            usleep(found == nil ? 20_000 : 1_000)
        }
    }

    /// Opens a log of these brokers. Announcements on it go to all nodes, of any epoch.
    ///
    /// The number of partitions of the current log is the one in `reel.control`. Partitions that were added to the
    /// topic later are not part of the log.
    public func open(_ epoch: Epoch) throws(LogError) -> any EventLog {
        let name = TopicRole.name(of: epoch)
        guard let topic = try admin.topic(name) else {
            throw LogError(.damaged, "the topic \(name) is missing; expected is the log of epoch \(epoch)")
        }
        let found = topic.partitions.count
        let wanted = try current().flatMap { $0.epoch == epoch ? $0.partitions : nil } ?? found
        guard wanted <= found else {
            throw LogError(.damaged, "the topic \(name) has \(found) partitions, expected are \(wanted)")
        }
        return try KafkaLog(
            epoch: epoch,
            partitions: wanted,
            topic: name,
            configuration: configuration,
            directory: nodes,
            messageBytesMax: { [configuration] in
                // It is seldom asked, so no connection is kept for it.
                let settings = try? KafkaAdmin(configuration).settings(of: name)
                return ["max.message.bytes", "segment.bytes"].compactMap { settings?[$0].flatMap { Int($0) } }.min()
            },
            log: log
        )
    }

    /// Makes a log the current one; see `LogStore.advance`. Does nothing if it is the current one already.
    public func advance(to next: CurrentLog) throws(LogError) {
        try control.advance(to: next)
    }

    /// Closes connections. Logs that were opened stay open.
    public func close() {
        control.close()
    }
}
