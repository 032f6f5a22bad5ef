import ReelCore

/// What a valid token gives its bearer.
public struct TokenGrant: Hashable, Sendable {
    /// Whom it was given to: `by` in the events that are published with it.
    public var subject: String
    /// From this second of the Unix epoch on it gives nothing.
    public var expiresAt: Int64
    /// The streams that may be read.
    public var read: [StreamPattern]
    /// The streams that may be published to. To read them takes more.
    public var publish: [StreamPattern]
    /// The streams whose sites may be listed.
    public var inspect: [StreamPattern]
    /// The streams that may be administered. `*` gives the paths of operators; it includes no other right.
    public var admin: [StreamPattern]

    /// A grant of these parts.
    public init(
        subject: String,
        expiresAt: Int64,
        read: [StreamPattern],
        publish: [StreamPattern],
        inspect: [StreamPattern] = [],
        admin: [StreamPattern] = []
    ) {
        self.subject = subject
        self.expiresAt = expiresAt
        self.read = read
        self.publish = publish
        self.inspect = inspect
        self.admin = admin
    }

    /// Whether the stream may be read.
    func mayRead(_ stream: StreamName) -> Bool { read.contains { $0.matches(stream) } }

    /// Whether the stream may be published to.
    func mayPublish(_ stream: StreamName) -> Bool { publish.contains { $0.matches(stream) } }

    /// True if the sites of the stream may be listed.
    func mayInspect(_ stream: StreamName) -> Bool { inspect.contains { $0.matches(stream) } }

    /// True if all streams may be administered, and so the node itself.
    var isAdmin: Bool { admin.contains { $0.description == "*" } }
}

/// Why a token is refused. It never says anything of the token itself but which rule it breaks.
public struct TokenRefusal: Error, Hashable, Sendable, CustomStringConvertible {
    /// The reason of a refusal, as the metric's label names it.
    public enum Reason: String, CaseIterable, Sendable {
        /// There is none.
        case missing
        /// It cannot be read, or does not say what it has to.
        case malformed
        /// It is of a key that the node does not have.
        case unknownKey = "unknown_key"
        /// Its signature is not of its key.
        case signature
        /// Its time is over.
        case expired
        /// Its time has not come.
        case notYet = "not_yet"
        /// It does not give the right that is needed.
        case forbidden
    }

    /// What was found and what was expected.
    public let description: String
    let reason: Reason

    init(_ description: String, _ reason: Reason = .malformed) {
        self.description = description
        self.reason = reason
    }
}
