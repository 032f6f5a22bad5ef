/// How many brokers keep what a topic holds.
struct TopicCopies: Equatable {
    /// How many hold each record.
    var replicas: Int
    /// How many of them must have a record before it is acked.
    var inSync: Int

    /// With so many replicas, as a topic is made of which nothing else is known.
    init(replicas: Int) {
        self.replicas = replicas
        inSync = replicas >= 3 ? 2 : 1
    }

    /// Those of a topic that is there.
    init(of topic: TopicFacts) {
        self.init(replicas: topic.replicas)
        if let found = topic.settings?["min.insync.replicas"].flatMap({ Int($0) }) { inSync = min(found, replicas) }
    }

    /// The same with another number of replicas. No fewer must have a record, as far as there are as many.
    func with(replicas: Int) -> TopicCopies {
        var copies = TopicCopies(replicas: replicas)
        copies.inSync = max(copies.inSync, min(inSync, replicas))
        return copies
    }
}
