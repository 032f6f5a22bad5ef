import ReelCore

/// The rights that a valid token gives its bearer.
public struct TokenGrant: Hashable, Sendable {
    /// The subject of the token, which becomes `by` in events that are published with it.
    public var subject: String
    /// The time from which on the token gives no rights, in seconds since 1970.
    public var expiresAt: Int64
    /// The streams that may be read.
    public var read: [StreamPattern]
    /// The streams that may be published to. This right does not include reading.
    public var publish: [StreamPattern]
    /// The streams of which the sites may be listed.
    public var inspect: [StreamPattern]
    /// The streams that may be administered. `*` gives access to the operator's paths; it includes no other right.
    public var admin: [StreamPattern]

    /// A grant of these rights.
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

    /// Returns true if the stream may be read.
    func mayRead(_ stream: StreamName) -> Bool { read.contains { $0.matches(stream) } }

    /// Returns true if the stream may be published to.
    func mayPublish(_ stream: StreamName) -> Bool { publish.contains { $0.matches(stream) } }

    /// Returns true if the sites of the stream may be listed.
    func mayInspect(_ stream: StreamName) -> Bool { inspect.contains { $0.matches(stream) } }

    /// True if all streams may be administered, and therefore the node itself.
    var isAdmin: Bool { admin.contains { $0.description == "*" } }
}

/// The reason why a token is refused. It names the broken rule and contains nothing of the token itself.
public struct TokenRefusal: Error, Hashable, Sendable, CustomStringConvertible {
    /// The kinds of reasons, as the metric's label names them.
    public enum Reason: String, CaseIterable, Sendable {
        /// The request has no token.
        case missing
        /// The token cannot be read, or a required claim is missing or wrong.
        case malformed
        /// The token refers to a key that the node does not have.
        case unknownKey = "unknown_key"
        /// The signature is not valid for the key.
        case signature
        /// The token has expired.
        case expired
        /// The token is not valid yet.
        case notYet = "not_yet"
        /// The token does not give the required right.
        case forbidden
    }

    /// The finding and the expectation.
    public let description: String
    let reason: Reason

    init(_ description: String, _ reason: Reason = .malformed) {
        self.description = description
        self.reason = reason
    }
}
