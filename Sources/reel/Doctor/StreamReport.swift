import ReelCore

/// What nodes hold of one stream, and of one site in it.
struct StreamReport {
    /// A snapshot node's state of the stream, or why there is none.
    struct State {
        var node: NodeAddress
        var fold: Result<Fold, StreamVisit.Failure>
    }

    /// An event of the site in the log.
    struct SiteEvent: Equatable {
        var seq: Seq
        var op: Op
        /// The gateway's clock, milliseconds; nil: not stamped.
        var atMs: Int64?
    }

    var stream: StreamName
    /// Where a gateway has the stream's partition.
    var head: Result<StreamAnswer, StreamVisit.Failure>
    var states: [State]
    /// True if nobody said who the snapshot nodes are: there may be others than those that were asked.
    var isPartial = false
    /// Two neighbours of `states` that do not lead to the same: what was found.
    var disagreements: [String] = []
    /// Nil: nobody asked for one.
    var site: Site?
    /// The site's events from its last consumed one on, as the log has them.
    var siteEvents: [SiteEvent] = []
    /// Why the log's events of the site are not known; nil: they are, as far as the log still has them.
    var siteFailure: StreamVisit.Failure?

    /// The state that is the furthest.
    var furthest: Fold? {
        states.compactMap { try? $0.fold.get() }.max { $0.seq < $1.seq }
    }
}
