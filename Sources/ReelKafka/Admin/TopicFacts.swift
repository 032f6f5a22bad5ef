public import ReelCore

/// A topic as the brokers describe it.
public struct TopicFacts: Equatable, Sendable {
    /// One partition of it.
    public struct Partition: Equatable, Sendable {
        /// The broker that leads it; nil: none does.
        public var leader: Int?
        /// How many brokers hold a copy.
        public var replicas: Int
        /// How many of them are in sync.
        public var inSync: Int
    }

    /// Its name.
    public var name: String
    /// By number.
    public var partitions: [Partition]
    /// Its settings, those of the brokers included where it has none of its own; nil: this user may not read them.
    public var settings: [String: String]?

    /// The fewest copies that a partition has.
    public var replicas: Int { partitions.map(\.replicas).min() ?? 0 }
}

/// What a topic is for, and so what it must be like.
public enum TopicRole: Equatable, Sendable {
    /// The records of an epoch.
    case data(partitions: Int)
    /// `reel.control`: which epoch is the current one.
    case control
    /// `reel.nodes`: what the nodes say of themselves.
    case nodes

    /// The name of the topic that holds an epoch's records.
    public static func name(of epoch: Epoch) -> String { "reel.\(epoch)" }
    /// The epoch whose records a topic of this name holds; nil: it is another topic.
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

    /// The settings that a topic of this role is made with.
    func settings(_ copies: TopicCopies) -> [String: String] {
        // Nobody reads a record's time, and no broker must refuse one for it.
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
            // Compaction keeps the last record of a key. After a race that would be the loser's, so it never comes:
            // the topic has one record for each epoch that there ever was.
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
