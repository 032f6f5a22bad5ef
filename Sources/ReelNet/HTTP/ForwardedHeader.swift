/// The header with which proxies say for whom they ask, RFC 7239.
enum ForwardedHeader {
    /// The hops that are looked at; more come from nobody who is to be believed.
    private static let hopsMax = 16

    /// The client of a request that came through a trusted proxy: of the `for` parameters, which each proxy adds at the
    /// end, the last one that is no trusted proxy. Nil: the header names nobody, or cannot be read.
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

    /// The parts of a text between separators that do not stand within quotes.
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
            // An IPv6 address stands in brackets, and a port may follow either.
            if node.hasPrefix("[") {
                guard let end = node.firstIndex(of: "]") else { return nil }
                node = String(node[node.index(after: node.startIndex)..<end])
            } else if let colon = node.firstIndex(of: ":") {
                node = String(node[..<colon])
            }
            // A loopback address is never another machine's client.
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
