/// Counters of the requests and events that a node refused because a limit was reached.
public struct LimitMeters: Sendable {
    /// The limits that are counted here. The limits of connections are counted by `NodeGate`.
    public enum Limit: String, CaseIterable, Sendable {
        case publishes
        case publishBytes = "publish_bytes"
        case newSites = "new_sites"
        case publishesOfPayer = "publishes_all_streams"
        case publishBytesOfPayer = "publish_bytes_all_streams"
        case newSitesOfPayer = "new_sites_all_streams"
        case connectionsPerSubject = "connections_per_subject"
        case subscriptions
        case filters
        case answers
        case waits
    }

    private let counters: [Limit: Counter]

    /// Registers the counters, or shares those that another role of the process has registered.
    public init(_ metrics: Metrics) {
        var counters: [Limit: Counter] = [:]
        for limit in Limit.allCases {
            counters[limit] = metrics.counter(Self.name, Self.help, labels: ["limit": limit.rawValue])
        }
        self.counters = counters
    }

    static let name = "reel_limited_total"
    static let help = "Requests, events and connections that were refused because a limit was reached, by the limit."

    /// Counts `count` refusals by this limit.
    public func met(_ limit: Limit, _ count: Int = 1) { counters[limit]?.add(count) }
}
