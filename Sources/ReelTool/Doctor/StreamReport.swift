import ReelCore

/// The answers of nodes about one stream, and about one site in it.
struct StreamReport {
    /// The state of the stream on a snapshot node, or the reason why there is none.
    struct State {
        var node: NodeAddress
        var fold: Result<Fold, StreamVisit.Failure>
    }

    /// An event of the site in the log.
    struct SiteEvent: Equatable {
        var seq: Seq
        var op: Op
        /// The time of the gateway, in milliseconds since 1970; nil if the event has none.
        var atMs: Int64?
    }

    var stream: StreamName
    /// The head of the stream's partition, as a gateway reports it.
    var head: Result<StreamAnswer, StreamVisit.Failure>
    var states: [State]
    /// True if the list of snapshot nodes is unknown: there can be nodes that were not asked.
    var isPartial = false
    /// A sentence for each pair of states that do not agree.
    var disagreements: [String] = []
    /// The site to check; nil for none.
    var site: Site?
    /// The site's events in the log, from the last consumed one.
    var siteEvents: [SiteEvent] = []
    /// The reason why the site's events in the log are unknown; nil if they are known.
    var siteFailure: StreamVisit.Failure?

    /// The state with the largest seq.
    var furthest: Fold? {
        states.compactMap { try? $0.fold.get() }.max { $0.seq < $1.seq }
    }
}
