import ReelNet

/// The party that a node charges for a client's share of common resources. It is never a site: every reader of a stream
/// can name the site of another client.
public enum Payer: Hashable, Sendable {
    /// The subject of the client's token.
    case subject(String)
    /// On a node without keys: the client's address, of IPv6 the first 64 bits.
    case address(UInt64)

    /// The origin of a client that has reset its connection. The node still reads the bytes that the client sent
    /// before, but the kernel no longer names the client's address.
    public static let unknownOrigin = UInt64.max

    /// The payer for a client with these rights and this `SocketAddress.origin`.
    public init(_ access: Access, _ origin: UInt64) {
        self = access.subject.map { .subject($0) } ?? .address(origin)
    }

    /// True for a client without a token on the node's own machine. That is a program of the operator, or a client of a
    /// local proxy that does not forward addresses.
    public var isLocal: Bool {
        switch self {
        case .subject: false
        // 127.0.0.0/8 in network byte order, and ::1.
        case .address(let origin): origin == 0 || origin <= UInt32.max && origin & 0xff == 127
        }
    }

    /// The words for the payer in errors.
    public var words: (who: String, whose: String) {
        switch self {
        case .subject: ("token's subject", "subject")
        case .address: ("address", "address")
        }
    }
}

/// The maximum amount of a resource for one payer.
public struct PayerLimit: Hashable, Sendable {
    /// The maximum amount; 0: no limit.
    public var most: Int
    /// True if the limit applies to local payers (`Payer.isLocal`), too.
    public var countsLocal: Bool

    /// A limit that the operator has set. It applies to every payer.
    public init(_ most: Int) {
        self.most = most
        countsLocal = true
    }

    /// A default limit. It does not apply to local payers.
    public static func standard(_ most: Int) -> PayerLimit {
        var limit = PayerLimit(most)
        limit.countsLocal = false
        return limit
    }

    /// No limit.
    public static let none = PayerLimit(0)

    /// Returns true if the limit applies to the payer.
    public func holds(for payer: Payer) -> Bool { most > 0 && (countsLocal || !payer.isLocal) }
}
