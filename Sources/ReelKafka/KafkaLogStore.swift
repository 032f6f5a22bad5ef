internal import Glibc
public import ReelCore
public import ReelLog

/// The logs of one Kafka cluster, one epoch after the other: each epoch has a topic of its own, `reel.control` says
/// which is the current one, `reel.nodes` is where the nodes find each other.
///
/// Every call blocks until the brokers have answered; where none does it fails within some five seconds.
public final class KafkaLogStore: LogStore {
    let configuration: KafkaConfiguration
    private let replicas: Int?
    private let log: KafkaLogLine
    let admin: KafkaAdmin
    private let control: ControlTopic
    private let nodes: NodeTopic

    /// So long after it was made a topic may be unknown to a broker.
    private static let settlingMs: Int64 = 15_000

    /// The logs of these brokers. A topic that is made has `replicas`; nil: as many as the log before, and the first
    /// one 3, or as many as there are brokers. `log` takes librdkafka's own lines.
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

    /// The current log; nil: none was made yet.
    public func current() throws(LogError) -> CurrentLog? {
        try control.current()
    }

    /// The epochs of all logs that these brokers keep, whatever `reel.control` says.
    public func epochs() throws(LogError) -> [Epoch] {
        try admin.topicNames().compactMap { TopicRole.epoch(ofTopic: $0) }
    }

    /// Makes the topics of a new epoch, and with the first one those that all share; see `LogStore.create`. An error
    /// where there are too few brokers for as many copies as the log before has.
    public func create(_ epoch: Epoch, partitions: Int) throws(LogError) {
        guard partitions > 0 else { throw LogError(.badRequest, "found \(partitions) partitions, expected 1 or more") }
        try make(TopicRole.controlName, .control)
        try make(TopicRole.nodesName, .nodes)
        try make(TopicRole.name(of: epoch), .data(partitions: partitions))
    }

    /// Makes the first log of these brokers, of a random epoch, with all the topics that it needs, and makes it the
    /// current one. Where there is a current log already, that one is the answer, and of all topics only `reel.nodes`
    /// is made if it is missing: an epoch's topic that is gone is never made again. `damaged` where no log is the
    /// current one though there are records of one. Safe to be called by several at once.
    public func begin(partitions: Int) throws(LogError) -> CurrentLog {
        if let current = try current() {
            try make(TopicRole.nodesName, .nodes)
            return current
        }
        guard try writtenLogs().isEmpty else {
            // It may be somebody else's, who was faster.
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
            // Somebody else was faster; what was made here was never used.
            try admin.delete(TopicRole.name(of: first.epoch))
            return current
        }
    }

    /// Makes a topic with all that it must have, unless there is one of this name.
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

    /// How many brokers are to keep the topics that are made. A broker that is down makes that no fewer.
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

    /// Those of the current log; where that is lost, of the topic that names it; where both are, of any log there is.
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

    /// Nil: there is no such topic.
    private func copies(of topic: String) throws(LogError) -> TopicCopies? {
        guard var facts = try admin.topic(topic) else { return nil }
        facts.settings = try admin.settings(of: topic)
        return TopicCopies(of: facts)
    }

    /// A topic that was made a moment ago is known to all brokers, and led, a moment later. A client that had its
    /// partitions from one broker and then asks one that does not know it yet takes it for deleted.
    private func settled(_ name: String) throws(LogError) -> TopicFacts {
        let all = try KafkaAdmin(configuration, isConnectedToAll: true)
        var knowing: Set<Int32> = []
        let end = nowMs() + Self.settlingMs
        while true {
            let heard = try all.hearsay(of: name)
            let found = heard.said.flatMap { $0.partitions.allSatisfy { $0.leader != nil } ? $0 : nil }
            if found == nil { knowing.remove(heard.broker) } else { knowing.insert(heard.broker) }
            if let found, knowing.isSuperset(of: heard.brokers) { return found }
            guard nowMs() < end else {
                // A broker that does not answer tells nobody anything wrong.
                if let found { return found }
                throw LogError(.logUnavailable, "the topic \(name) was made, but no broker leads it")
            }
            usleep(found == nil ? 20_000 : 1_000)
        }
    }

    /// Opens a log of these brokers; what nodes announce on it goes to all nodes, whatever epoch they are at. The
    /// current log has as many partitions as `reel.control` says; those that somebody has added to the topic are no
    /// part of it.
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
                // Seldom asked, so no connection is kept for it.
                let settings = try? KafkaAdmin(configuration).settings(of: name)
                return ["max.message.bytes", "segment.bytes"].compactMap { settings?[$0].flatMap { Int($0) } }.min()
            },
            log: log
        )
    }

    /// Makes a log the current one; see `LogStore.advance`. Nothing happens where it is already.
    public func advance(to next: CurrentLog) throws(LogError) {
        try control.advance(to: next)
    }

    /// Closes connections. Logs that were opened stay open.
    public func close() {
        control.close()
    }
}
