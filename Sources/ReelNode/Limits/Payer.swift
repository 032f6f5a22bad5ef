import ReelNet

/// The party that a node charges for a client's share of common resources. It is never a site: every reader of a stream
/// can name the site of another client.
public enum Payer: Hashable, Sendable {
    /// The subject of its token.
    case subject(String)
    /// On a node without keys: its address, of IPv6 the first 64 bits.
    case address(UInt64)

    /// The origin of a client that has reset its connection. The node still reads what the client sent before, but the
    /// kernel no longer names the client's address.
    public static let unknownOrigin = UInt64.max

    /// The payer for a client with these rights and this `SocketAddress.origin`.
    public init(_ access: Access, _ origin: UInt64) {
        self = access.subject.map { .subject($0) } ?? .address(origin)
    }

    /// True for a client without a token on the node's own machine: a program of the operator, or a client of a local
    /// proxy that does not forward addresses.
    public var isLocal: Bool {
        switch self {
        case .subject: false
        // 127.0.0.0/8 in the network's order of bytes, and ::1.
        case .address(let origin): origin == 0 || origin <= UInt32.max && origin & 0xff == 127
        }
    }

    /// In words, for an error.
    public var words: (who: String, whose: String) {
        switch self {
        case .subject: ("token's subject", "subject")
        case .address: ("address", "address")
        }
    }
}

/// The largest amount of a resource for one payer.
public struct PayerLimit: Hashable, Sendable {
    /// 0: there is no limit.
    public var most: Int
    /// Whether it holds for `Payer.isLocal` too.
    public var countsLocal: Bool

    /// A limit that the operator has set. It holds for every payer.
    public init(_ most: Int) {
        self.most = most
        countsLocal = true
    }

    /// A default limit. It does not hold for local payers.
    public static func standard(_ most: Int) -> PayerLimit {
        var limit = PayerLimit(most)
        limit.countsLocal = false
        return limit
    }

    /// No limit.
    public static let none = PayerLimit(0)

    /// Whether the payer is limited at all.
    public func holds(for payer: Payer) -> Bool { most > 0 && (countsLocal || !payer.isLocal) }
}
