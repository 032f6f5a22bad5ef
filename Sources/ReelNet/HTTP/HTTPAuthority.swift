/// The form of a `Host` field: a host and perhaps a port (RFC 9110, 7.2; RFC 3986, 3.2.2).
enum HTTPAuthority {
    /// True for `HOST` and `HOST:PORT`. The host is a name, an IPv4 address, or an IPv6 address in brackets; the port
    /// is a number up to 65,535, or empty.
    static func isValid(_ text: String) -> Bool {
        let (host, port): (Substring, Substring?)
        if text.hasPrefix("[") {
            guard let end = text.firstIndex(of: "]") else { return false }
            let address = text[text.index(after: text.startIndex)..<end]
            guard address.contains(":"), SocketAddress.isNumeric(String(address)) else { return false }
            let rest = text[text.index(after: end)...]
            guard rest.isEmpty || rest.hasPrefix(":") else { return false }
            (host, port) = (address, rest.isEmpty ? nil : rest.dropFirst())
        } else if let colon = text.firstIndex(of: ":") {
            (host, port) = (text[..<colon], text[text.index(after: colon)...])
            guard host.utf8.allSatisfy(isName) else { return false }
        } else {
            (host, port) = (text[...], nil)
            guard host.utf8.allSatisfy(isName) else { return false }
        }
        return !host.isEmpty && port.map(isPort) ?? true
    }

    private static func isPort(_ text: Substring) -> Bool {
        if text.isEmpty { return true }
        return text.utf8.count <= 5 && text.utf8.allSatisfy { (48...57).contains($0) } && UInt16(text) != nil
    }

    /// True for a byte of a name or an IPv4 address; brackets, colons and the `@` after a user name are refused.
    private static func isName(_ byte: UInt8) -> Bool {
        HTTPCharacters.isAuthority(byte) && ![UInt8(ascii: "["), UInt8(ascii: "]"), UInt8(ascii: ":")].contains(byte)
    }
}
