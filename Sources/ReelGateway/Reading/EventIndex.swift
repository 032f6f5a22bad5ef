import ReelLog
import ReelNode

/// The index of old events by stream, on other nodes. All calls are on the loop.
protocol EventIndex: AnyObject {
    /// Returns a node that can be asked for the query; nil: there is none, or asking does not pay.
    func node(for query: LogQuery) -> NodeAnnouncement?

    /// Asks a node. Calls `then` later with a piece that begins at the query's first seq and covers at least this seq,
    /// or with nil if the node has none.
    ///
    /// - Parameter authorization: `Authorization` of the client, which the node checks; nil: the client has sent none.
    func ask(
        _ node: NodeAnnouncement,
        for query: LogQuery,
        authorization: String?,
        then: @escaping (EventRange?) -> Void
    )
}
