public import ReelCore

/// How a node does: the worst of its roles. It is the answer to `/readyz`, and what the node announces to the others.
public struct NodeHealth: Sendable {
    /// One or both.
    public var roles: [RoleHealth]
    /// True once the node ends.
    public var isLeaving: Bool
    /// What an operator must see to though the node serves, such as a setting of a topic; nil: nothing.
    public var notice: String?

    /// A node with these roles, and what there is to say of its log's storage.
    public init(_ roles: [RoleHealth], isLeaving: Bool = false, notices: [String?] = []) {
        self.roles = roles
        self.isLeaving = isLeaving
        let said = notices.compactMap(\.self)
        notice = said.isEmpty ? nil : said.joined(separator: "; ")
    }

    /// True if every role can serve every partition, and the node does not end.
    public var isReady: Bool { !isLeaving && roles.allSatisfy(\.isReady) }

    /// How the log does for the role that is worst off.
    public var log: LogState { roles.map(\.log).max() ?? .ok }

    /// What more there is to say of the log's state, by role, and of its storage.
    public var detail: String? {
        let details =
            roles.compactMap { role in
                role.detail.map { roles.count > 1 ? "\(role.role.rawValue): \($0)" : $0 }
            } + [notice].compactMap(\.self)
        return details.isEmpty ? nil : details.joined(separator: "; ")
    }

    /// Why the node is not ready; nil: it is.
    public var reason: String? { reason(\.reason) }

    private func reason(_ ofRole: (RoleHealth) -> String?) -> String? {
        isLeaving
            ? "it is leaving"
            : roles.compactMap { role in
                ofRole(role).map { roles.count > 1 ? "\(role.role.rawValue): \($0)" : $0 }
            }.first
    }

    /// The body of `/readyz`. Sentences that may name files and addresses are for operators.
    public func body(epoch: Epoch, deployment: Deployment? = nil, forOperator: Bool = true) -> [UInt8] {
        var body = JSONObjectWriter()
        body.member("ready", isReady)
        body.member("leaving", isLeaving)
        body.member("reason", forOperator ? reason : reason(\.publicReason))
        body.member("log", log.rawValue)
        body.member("detail", forOperator ? detail : nil)
        body.member("notice", forOperator ? notice : nil)
        body.member("epoch", epoch.description)
        body.member("deployment", deployment?.description)
        body.member("clock", WallClock.nowMs())
        body.objects("roles", roles) { object, role in
            object.member("role", role.role.rawValue)
            object.member("ready", role.isReady)
            if role.role == .gateway { object.member("behind", role.isBehind) }
            object.member("log", role.log.rawValue)
            object.objects("partitions", role.partitions.enumerated()) { object, place in
                object.member("partition", place.offset)
                object.member("ready", place.element.isReady)
                object.member("seq", place.element.seq)
                object.member("goal", place.element.goal)
                object.member("skipped_to", place.element.skippedTo)
                object.member("code", place.element.stop?.code.rawValue)
                object.member("stopped", forOperator ? place.element.stop?.reason : nil)
            }
        }
        return body.finish()
    }
}
