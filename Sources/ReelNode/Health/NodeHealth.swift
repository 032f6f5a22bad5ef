internal import ReelBase
public import ReelCore

/// The health of a node: the worst of its roles. It is the answer to `/readyz`, and part of the node's announcement.
public struct NodeHealth: Sendable {
    /// The roles of the node: one or both.
    public var roles: [RoleHealth]
    /// True once the node is leaving.
    public var isLeaving: Bool
    /// A matter that an operator must attend to although the node serves, such as a setting of a topic; nil: none.
    public var notice: String?

    /// The health of a node with these roles.
    ///
    /// - Parameters:
    ///   - roles: The roles of the node: one or both.
    ///   - isLeaving: True once the node is leaving.
    ///   - notices: The notices about the log's storage, which are joined; nil: no notice.
    public init(_ roles: [RoleHealth], isLeaving: Bool = false, notices: [String?] = []) {
        self.roles = roles
        self.isLeaving = isLeaving
        let present = notices.compactMap(\.self)
        notice = present.isEmpty ? nil : present.joined(separator: "; ")
    }

    /// True if every role can serve every partition, and the node is not leaving.
    public var isReady: Bool { !isLeaving && roles.allSatisfy(\.isReady) }

    /// The state of the log: the worst state that any role sees.
    public var log: LogState { roles.map(\.log).max() ?? .ok }

    /// Details of the log's state by role, and the notice; nil: none.
    public var detail: String? {
        let details =
            roles.compactMap { role in
                role.detail.map { roles.count > 1 ? "\(role.role.rawValue): \($0)" : $0 }
            } + [notice].compactMap(\.self)
        return details.isEmpty ? nil : details.joined(separator: "; ")
    }

    /// The reason why the node is not ready; nil: it is ready.
    public var reason: String? { reason(\.reason) }

    private func reason(_ ofRole: (RoleHealth) -> String?) -> String? {
        isLeaving
            ? "it is leaving"
            : roles.compactMap { role in
                ofRole(role).map { roles.count > 1 ? "\(role.role.rawValue): \($0)" : $0 }
            }.first
    }

    /// Returns the body of `/readyz`.
    ///
    /// - Parameters:
    ///   - epoch: The epoch of the log.
    ///   - deployment: The deployment of the log; nil: it is omitted.
    ///   - forOperator: True to add the sentences that may name files and addresses.
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
