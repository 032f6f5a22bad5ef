import Glibc

/// A list of addresses and networks, such as `10.0.0.0/8,127.0.0.1,fd00::/8`.
public struct AddressRanges: Hashable, Sendable {
    /// One address or network. An IPv4 address is stored in its IPv6-mapped form, so that both families compare alike.
    private struct Range: Hashable {
        var bytes: [UInt8]
        var prefix: Int
    }

    private var ranges: [Range] = []

    /// Creates an empty list.
    public init() {}

    /// Parses a list of addresses and networks that are separated by commas.
    ///
    /// - Throws: `badAddress` for an item that is neither an address nor a network.
    public init(parsing text: String) throws(NetError) {
        for item in text.split(separator: ",") {
            let item = item.trimmed
            let parts = item.split(separator: "/", omittingEmptySubsequences: false)
            guard parts.count <= 2, let host = parts.first, let bytes = Self.bytes(of: String(host)) else {
                throw NetError(.badAddress, "found `\(item)`, expected an address or a network such as 10.0.0.0/8")
            }
            let shift = host.contains(":") ? 0 : 96
            var prefix = 128
            if parts.count == 2 {
                guard let bits = Int(parts[1]), parts[1].allSatisfy({ ("0"..."9").contains($0) }),
                    (0...(128 - shift)).contains(bits)
                else {
                    throw NetError(.badAddress, "found `\(item)`, expected 0 to \(128 - shift) behind the slash")
                }
                prefix = bits + shift
            }
            ranges.append(Range(bytes: bytes, prefix: prefix))
        }
    }

    /// True if the list is empty.
    public var isEmpty: Bool { ranges.isEmpty }

    /// True if `address` equals one of the addresses or is in one of the networks.
    public func contains(_ address: SocketAddress) -> Bool {
        guard !ranges.isEmpty, let bytes = Self.bytes(of: address.host) else { return false }
        return ranges.contains { range in
            let whole = range.prefix / 8
            guard bytes[..<whole] == range.bytes[..<whole] else { return false }
            let rest = range.prefix % 8
            return rest == 0 || (bytes[whole] ^ range.bytes[whole]) >> UInt8(8 - rest) == 0
        }
    }

    private static func bytes(of host: String) -> [UInt8]? {
        var (short, long) = (in_addr(), in6_addr())
        if inet_pton(AF_INET, host, &short) == 1 {
            return [UInt8](repeating: 0, count: 10) + [0xff, 0xff] + withUnsafeBytes(of: short) { Array($0) }
        }
        guard inet_pton(AF_INET6, host, &long) == 1 else { return nil }
        return withUnsafeBytes(of: long) { Array($0) }
    }
}

extension Substring {
    /// The text without spaces at its start and end.
    fileprivate var trimmed: Substring {
        var text = self
        while text.first == " " { text.removeFirst() }
        while text.last == " " { text.removeLast() }
        return text
    }
}
