public import ReelCore

/// A topic as the brokers describe it.
public struct TopicFacts: Equatable, Sendable {
    /// A partition of the topic.
    public struct Partition: Equatable, Sendable {
        /// The broker that leads it; nil: none does.
        public var leader: Int?
        /// How many brokers hold a copy.
        public var replicas: Int
        /// How many of them are in sync.
        public var inSync: Int
    }

    /// The name of the topic.
    public var name: String
    /// The partitions, by number.
    public var partitions: [Partition]
    /// The settings; those that the topic does not set are the brokers'. Nil: this user has no right to read them.
    public var settings: [String: String]?

    /// The smallest number of replicas of any partition.
    public var replicas: Int { partitions.map(\.replicas).min() ?? 0 }
}

/// The purpose of a topic, which decides its settings.
public enum TopicRole: Equatable, Sendable {
    /// The records of an epoch.
    case data(partitions: Int)
    /// `reel.control`: which epoch is the current one.
    case control
    /// `reel.nodes`: the announcements of the nodes.
    case nodes

    /// Returns the name of the topic with an epoch's records.
    public static func name(of epoch: Epoch) -> String { "reel.\(epoch)" }
    /// Returns the epoch of the records in a topic of this name; nil: it is another topic.
    static func epoch(ofTopic name: String) -> Epoch? {
        name.hasPrefix("reel.") ? Epoch(String(name.dropFirst("reel.".count))) : nil
    }
    /// The name of the topic that says which epoch is the current one.
    public static let controlName = "reel.control"
    /// The name of the topic of announcements.
    public static let nodesName = "reel.nodes"

    var isData: Bool {
        if case .data = self { true } else { false }
    }

    var partitions: Int {
        switch self {
        case .data(let partitions): partitions
        case .control, .nodes: 1
        }
    }

    /// The settings with which a topic of this role is created.
    func settings(_ copies: TopicCopies) -> [String: String] {
        // No reader uses a record's time, and no broker may refuse a record because of it.
        var settings = ["unclean.leader.election.enable": "false", "message.timestamp.type": "LogAppendTime"]
        switch self {
        case .data:
            settings["cleanup.policy"] = "delete"
            settings["retention.ms"] = "-1"
            settings["retention.bytes"] = "-1"
            settings["max.message.bytes"] = "\(KafkaConfiguration.messageBytesMax)"
            settings["segment.bytes"] = "\(1 << 30)"
        case .control:
            settings["cleanup.policy"] = "compact"
            // Compaction keeps the last record of a key. After a race that would be the invalid one, so compaction must
            // never happen. The topic keeps one record for each epoch.
            settings["min.compaction.lag.ms"] = "\(Int64.max)"
        case .nodes:
            settings["cleanup.policy"] = "delete"
            settings["retention.ms"] = "600000"
            settings["segment.ms"] = "600000"
        }
        if self != .nodes { settings["min.insync.replicas"] = "\(copies.inSync)" }
        return settings
    }
}
