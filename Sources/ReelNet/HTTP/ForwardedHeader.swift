/// The header in which proxies name the client of a request (RFC 7239).
enum ForwardedHeader {
    /// The maximum number of hops that are read. A longer list cannot come from trusted proxies only.
    private static let hopsMax = 16

    /// Returns the client of a request that came through a trusted proxy. Each proxy adds a `for` parameter at the end;
    /// the client is the last one that is not a trusted proxy. If all of them are trusted proxies, it is the first one.
    ///
    /// Returns nil if the header names no client or cannot be read.
    static func client(in headers: HTTPHeaders, trusting proxies: AddressRanges) -> SocketAddress? {
        let elements = headers.all("forwarded").flatMap { split($0[...], at: ",") }
        var nearest: SocketAddress?
        for element in elements.suffix(hopsMax).reversed() {
            guard let address = address(in: element) else { return nearest }
            nearest = address
            if !proxies.contains(address) { return address }
        }
        return nearest
    }

    /// Returns the parts of a text between separators; a separator in quotes does not count.
    private static func split(_ text: Substring, at separator: Character) -> [Substring] {
        var (isQuoted, isEscaped) = (false, false)
        return text.split { character in
            defer { isEscaped = isQuoted && !isEscaped && character == "\\" }
            if character == "\"", !isEscaped { isQuoted.toggle() }
            return character == separator && !isQuoted
        }
    }

    private static func address(in element: Substring) -> SocketAddress? {
        for pair in split(element, at: ";") {
            let parts = pair.split(separator: "=", maxSplits: 1)
            guard parts.count == 2, parts[0].filter({ $0 != " " }).lowercased() == "for" else { continue }
            var node = parts[1].filter { $0 != " " && $0 != "\"" }
            // An IPv6 address is in brackets, and a port may follow an address of either family.
            if node.hasPrefix("[") {
                guard let end = node.firstIndex(of: "]") else { return nil }
                node = String(node[node.index(after: node.startIndex)..<end])
            } else if let colon = node.firstIndex(of: ":") {
                node = String(node[..<colon])
            }
            // The client of another machine never has a loopback address.
            guard SocketAddress.isNumeric(node), let address = try? SocketAddress(node, port: 0), !address.isLoopback,
                !address.isUnspecified
            else { return nil }
            return address
        }
        return nil
    }
}

extension SocketAddress {
    /// The address as a `for` parameter of `Forwarded`.
    public var forwardedFor: String { host.contains(":") ? "for=\"[\(host)]\"" : "for=\(host)" }
}
