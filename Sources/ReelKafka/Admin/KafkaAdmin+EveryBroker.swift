internal import CRdkafka
internal import Glibc
internal import ReelCore
internal import ReelLog

// What one broker alone cannot answer: one that has started a moment ago, or lags behind, knows few topics; and of
// releases each knows its own.
extension KafkaAdmin {
    /// So long it asks again for a topic that no broker knows: they may all have just started.
    private static let doubtMs: Int64 = 1_500
    /// So long it waits for brokers that do not answer, while others do.
    private static let roundMs: Int64 = 3_000

    /// The topic of this name; nil: there is none, as all brokers that answer have said.
    func topic(_ name: String) throws(LogError) -> TopicFacts? {
        if let facts = try hearsay(of: name).said { return facts }
        let all = try connectedToAll()
        let isThere = { (facts: TopicFacts?) in facts != nil }
        let heard = try all.everyAnswer(atLeastMs: Self.doubtMs, until: isThere) { () throws(LogError) in
            try all.hearsay(of: name)
        }
        return heard.compactMap(\.said).first
    }

    /// The names of all topics that this user may see, and any broker knows.
    func topicNames() throws(LogError) -> [String] {
        let all = try connectedToAll()
        let heard = try all.everyAnswer { () throws(LogError) in
            try all.metadata(of: nil, all: true) { metadata -> [String] in
                UnsafeBufferPointer(start: metadata.topics, count: Int(metadata.topic_cnt))
                    .compactMap { $0.topic.map { String(cString: $0) } }
            }
        }
        return Set(heard.flatMap(\.said)).sorted()
    }

    /// How old each broker is that answers.
    func brokerVersions() throws(LogError) -> [BrokerVersion] {
        let all = try connectedToAll()
        _ = try all.everyAnswer { () throws(LogError) in try all.metadata(of: nil) { _ in } }
        return all.versions
    }

    /// How many brokers are alive: as many as the best informed of them knows.
    func brokerCount() throws(LogError) -> Int {
        let all = try connectedToAll()
        let heard = try all.everyAnswer { () throws(LogError) in try all.metadata(of: nil) { _ in } }
        return heard.map(\.brokers.count).max() ?? 0
    }

    /// Connections are made when they are needed; these are kept no longer than for one question.
    private func connectedToAll() throws(LogError) -> KafkaAdmin {
        try KafkaAdmin(configuration, isConnectedToAll: true)
    }

    /// Asks until each broker has answered, or `isEnough` says of an answer that it settles the matter. All answers, in
    /// the order in which they came.
    private func everyAnswer<Said>(
        atLeastMs: Int64 = 0,
        until isEnough: (Said) -> Bool = { _ in false },
        _ ask: () throws(LogError) -> TopicMetadata<Said>
    ) throws(LogError) -> [TopicMetadata<Said>] {
        let beginMs = nowMs()
        let mostMs = Self.roundMs * Int64(configuration.patience)
        var round = BrokerRound(fromMs: beginMs + atLeastMs, untilMs: beginMs + mostMs)
        var answers: [TopicMetadata<Said>] = []
        while true {
            do throws(LogError) {
                let heard = try ask()
                round.hear(heard.broker, of: heard.brokers)
                answers.append(heard)
                if isEnough(heard.said) { return answers }
            } catch {
                // A broker that hangs does not spoil what others have said.
                guard error.code == .logUnavailable, !answers.isEmpty else { throw error }
            }
            if round.isOver(nowMs: nowMs()) { return answers }
            usleep(5_000)
        }
    }
}
