public import ReelLog

/// Where nodes announce themselves: one for all epochs of a deployment.
public protocol NodeDirectory: AnyObject, Sendable {
    /// Announces a node to the others.
    func announce(_ node: NodeAnnouncement) throws(LogError)
    /// What the nodes announced lately, by id.
    func nodes() throws(LogError) -> [NodeAnnouncement]
}
