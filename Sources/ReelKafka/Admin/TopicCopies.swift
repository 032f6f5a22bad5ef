/// The number of brokers that keep the records of a topic.
struct TopicCopies: Equatable {
    /// How many brokers hold each record.
    var replicas: Int
    /// How many of them must have a record before it is acknowledged.
    var inSync: Int

    /// Creates the default for `replicas` replicas.
    init(replicas: Int) {
        self.replicas = replicas
        inSync = replicas >= 3 ? 2 : 1
    }

    /// Creates the value of an existing topic.
    init(of topic: TopicFacts) {
        self.init(replicas: topic.replicas)
        if let found = topic.settings?["min.insync.replicas"].flatMap({ Int($0) }) { inSync = min(found, replicas) }
    }

    /// Returns the same with another number of replicas. `inSync` does not decrease, except to `replicas`.
    func with(replicas: Int) -> TopicCopies {
        var copies = TopicCopies(replicas: replicas)
        copies.inSync = max(copies.inSync, min(inSync, replicas))
        return copies
    }
}
