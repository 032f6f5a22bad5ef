public import ReelLog

/// The announcements of the nodes: one directory for all epochs of a deployment.
public protocol NodeDirectory: AnyObject, Sendable {
    /// Announces a node to the others.
    func announce(_ node: NodeAnnouncement) throws(LogError)
    /// Returns the recent announcements of the nodes, sorted by id.
    func nodes() throws(LogError) -> [NodeAnnouncement]
}
