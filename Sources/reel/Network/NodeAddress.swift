import ReelNet

/// Where a node is: `http://HOST:PORT`, or `HOST:PORT` alone.
struct NodeAddress: Hashable, Sendable, CustomStringConvertible {
    let host: String
    let port: UInt16

    init(_ url: String) throws(Complaint) {
        var rest = url[...]
        if let scheme = url.firstRange(of: "://") {
            guard url[..<scheme.lowerBound] == "http" else {
                throw Complaint(.usage, "`\(url)` is no address that can be asked; expected is http://HOST:PORT")
            }
            rest = url[scheme.upperBound...]
        }
        if rest.hasSuffix("/") { rest.removeLast() }
        guard let (host, port) = SocketAddress.split(String(rest)) else {
            throw Complaint(.usage, "`\(url)` is no address of a node; expected is http://HOST:PORT")
        }
        (self.host, self.port) = (host, port)
    }

    var description: String { host.contains(":") ? "http://[\(host)]:\(port)" : "http://\(host):\(port)" }
}
