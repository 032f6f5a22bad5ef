internal import CRdkafka
internal import Glibc
internal import ReelBase
internal import ReelCore
internal import ReelLog

// Questions that one broker alone cannot answer. A broker that has just started, or lags behind, knows few topics. Each
// broker knows only its own release.
extension KafkaAdmin {
    /// How long the brokers are asked again for a topic that none of them knows, in milliseconds: all may have just
    /// started.
    private static let doubtMs: Int64 = 1_500
    /// How long to wait for brokers that do not answer while others do, in milliseconds.
    private static let roundMs: Int64 = 3_000

    /// Returns the topic of this name; nil: all brokers that answer say that there is none.
    func topic(_ name: String) throws(LogError) -> TopicFacts? {
        if let facts = try hearsay(of: name).said { return facts }
        let all = try connectedToAll()
        let isThere = { (facts: TopicFacts?) in facts != nil }
        let heard = try all.everyAnswer(atLeastMs: Self.doubtMs, until: isThere) { () throws(LogError) in
            try all.hearsay(of: name)
        }
        return heard.compactMap(\.said).first
    }

    /// Returns the names of all topics that any broker knows and this user may see.
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

    /// Returns the version of each broker that answers.
    func brokerVersions() throws(LogError) -> [BrokerVersion] {
        let all = try connectedToAll()
        _ = try all.everyAnswer { () throws(LogError) in try all.metadata(of: nil) { _ in } }
        return all.versions
    }

    /// Returns the number of living brokers: the largest number that any of them knows.
    func brokerCount() throws(LogError) -> Int {
        let all = try connectedToAll()
        let heard = try all.everyAnswer { () throws(LogError) in try all.metadata(of: nil) { _ in } }
        return heard.map(\.brokers.count).max() ?? 0
    }

    /// Opens connections to all brokers for one question. They are not kept.
    private func connectedToAll() throws(LogError) -> KafkaAdmin {
        try KafkaAdmin(configuration, isConnectedToAll: true)
    }

    /// Asks repeatedly until each broker has answered.
    ///
    /// - Parameters:
    ///   - atLeastMs: The minimum time to ask, in milliseconds.
    ///   - isEnough: True if an answer makes further ones unnecessary.
    ///   - ask: Asks any broker.
    /// - Returns: All answers, in the order of their arrival.
    private func everyAnswer<Said>(
        atLeastMs: Int64 = 0,
        until isEnough: (Said) -> Bool = { _ in false },
        _ ask: () throws(LogError) -> TopicMetadata<Said>
    ) throws(LogError) -> [TopicMetadata<Said>] {
        let beginMs = MonotonicClock.nowMs()
        let roundMaxMs = Self.roundMs * Int64(configuration.patience)
        var round = BrokerRound(fromMs: beginMs + atLeastMs, untilMs: beginMs + roundMaxMs)
        var answers: [TopicMetadata<Said>] = []
        while true {
            do throws(LogError) {
                let heard = try ask()
                round.hear(heard.broker, of: heard.brokers)
                answers.append(heard)
                if isEnough(heard.said) { return answers }
            } catch {
                // A broker that hangs does not invalidate the answers of the others.
                guard error.code == .logUnavailable, !answers.isEmpty else { throw error }
            }
            if round.isOver(nowMs: MonotonicClock.nowMs()) { return answers }
            usleep(5_000)
        }
    }
}
