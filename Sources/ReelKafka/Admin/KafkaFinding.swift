/// A problem with the brokers or a topic.
public struct KafkaFinding: Equatable, Sendable, CustomStringConvertible {
    /// The severity of a finding.
    public enum Weight: String, Sendable {
        /// Acknowledged events can be lost, or Reel does not work at all.
        case error
        /// Reel works, but an operator should know of the problem.
        case warning
    }

    /// The severity.
    public var weight: Weight
    /// `broker`, with its address if only one is affected, or the name of a topic.
    public var subject: String
    /// The text: what was found, what is wanted, and why.
    public var text: String
    /// The command that repairs it; nil: there is none.
    public var repair: String?

    /// The finding in one line.
    public var description: String {
        "\(subject): \(text)" + (repair.map { "; to repair it: \($0)" } ?? "")
    }
}

extension TopicFacts {
    /// Returns all that is wrong in a topic of this role. `bootstrap` is used in the repair commands.
    func findings(as role: TopicRole, bootstrap: String) -> [KafkaFinding] {
        var findings = shapeFindings(role)
        guard let settings else {
            let wanted = role.wanted(replicas: replicas).map { "\($0.name)=\($0.value)" }.joined(separator: ", ")
            findings.append(
                KafkaFinding(
                    weight: .warning,
                    subject: name,
                    text: "its settings could not be checked, this user may not read them; wanted are \(wanted)",
                    repair: "kafka-acls.sh --bootstrap-server \(bootstrap) --add --allow-principal User:NAME"
                        + " --operation DescribeConfigs --resource-pattern-type prefixed --topic reel."
                )
            )
            return findings
        }
        for wanted in role.wanted(replicas: replicas) {
            let found = settings[wanted.name] ?? "not set"
            if wanted.isMet(by: found) { continue }
            findings.append(
                KafkaFinding(
                    weight: wanted.weight,
                    subject: name,
                    text: "\(wanted.name) is \(found), wanted is \(wanted.words): \(wanted.reason)",
                    repair: "kafka-configs.sh --bootstrap-server \(bootstrap) --alter --entity-type topics"
                        + " --entity-name \(name) --add-config \(wanted.name)=\(wanted.value)"
                )
            )
        }
        return findings
    }

    private func shapeFindings(_ role: TopicRole) -> [KafkaFinding] {
        var findings: [KafkaFinding] = []
        if partitions.count != role.partitions {
            let repair: String? =
                if case .data = role { "reel epoch new --partitions \(partitions.count)" } else { nil }
            findings.append(
                KafkaFinding(
                    weight: .error,
                    subject: name,
                    text: "it has \(partitions.count) partitions, wanted is \(role.partitions): a stream's events"
                        + " would go to another partition than before",
                    repair: repair
                )
            )
        }
        if replicas == 1, role != .nodes {
            findings.append(
                KafkaFinding(
                    weight: .warning,
                    subject: name,
                    text: "its records lie on one broker each, wanted are 3: what that broker's disk loses is lost",
                    repair: nil
                )
            )
        }
        return findings
    }
}

/// The required value of one setting of a topic.
struct WantedSetting {
    enum Rule {
        case exactly
        case atLeast(Int)
        case within(ClosedRange<Int>)
    }
    let name: String
    /// The value for the repair command.
    let value: String
    let rule: Rule
    let weight: KafkaFinding.Weight
    let reason: String

    func isMet(by found: String) -> Bool {
        switch rule {
        case .exactly: found == value
        case .atLeast(let least): Int(found).map { $0 >= least } ?? false
        case .within(let range): Int(found).map(range.contains) ?? false
        }
    }

    var words: String {
        switch rule {
        case .exactly: value
        case .atLeast(let least): "at least \(least)"
        case .within(let range): range.count == 1 ? "\(range.lowerBound)" : "\(range.lowerBound) to \(range.upperBound)"
        }
    }
}

extension TopicRole {
    /// Returns the settings to check in a topic of `replicas` replicas.
    func wanted(replicas: Int) -> [WantedSetting] {
        func exactly(_ name: String, _ weight: KafkaFinding.Weight, _ reason: String) -> WantedSetting {
            let value = settings(TopicCopies(replicas: replicas))[name] ?? ""
            return WantedSetting(name: name, value: value, rule: .exactly, weight: weight, reason: reason)
        }
        let election = exactly(
            "unclean.leader.election.enable",
            .error,
            "a broker that lags behind would take the lead, and what it has not would be lost"
        )
        let byBroker = exactly(
            "message.timestamp.type",
            .warning,
            "the brokers would refuse what comes from a node whose clock goes wrong"
        )
        switch self {
        case .data:
            return [
                exactly("cleanup.policy", .error, "events would be thrown away while they are needed"),
                exactly("retention.ms", .error, "events would be thrown away by their age"),
                exactly("retention.bytes", .error, "events would be thrown away by their number"),
                election,
                WantedSetting(
                    name: "max.message.bytes",
                    value: "\(KafkaConfiguration.messageBytesMax)",
                    rule: .atLeast(KafkaConfiguration.messageBytesMax),
                    weight: .error,
                    reason: "an event of 1 MiB would be refused"
                ),
                WantedSetting(
                    name: "segment.bytes",
                    value: "\(1 << 30)",
                    rule: .atLeast(KafkaConfiguration.messageBytesMax),
                    weight: .error,
                    reason: "an event of 1 MiB would be refused"
                ),
                byBroker,
            ] + inSync(replicas)
        case .control:
            return [
                exactly("cleanup.policy", .error, "the record of the current epoch would be thrown away"),
                exactly(
                    "min.compaction.lag.ms",
                    .error,
                    "of two epochs that were begun at once compaction would keep the one that does not count"
                ),
                election, byBroker,
            ] + inSync(replicas)
        case .nodes:
            return [exactly("cleanup.policy", .warning, "announcements are worth nothing after ten minutes")]
        }
    }

    /// Returns the requirements for `min.insync.replicas`. If it is above the number of replicas, nothing can be
    /// written. If it is 1, the only replica with an event may fail next.
    private func inSync(_ replicas: Int) -> [WantedSetting] {
        let name = "min.insync.replicas"
        let all = WantedSetting(
            name: name,
            value: "\(TopicCopies(replicas: replicas).inSync)",
            rule: .within(1...max(1, replicas)),
            weight: .error,
            reason: "there are \(replicas) replicas, so nothing could be written"
        )
        guard replicas > 1 else { return [all] }
        let two = WantedSetting(
            name: name,
            value: "2",
            rule: .atLeast(2),
            weight: .warning,
            reason: "an event may be acked when one broker alone has it"
        )
        return [all, two]
    }
}
