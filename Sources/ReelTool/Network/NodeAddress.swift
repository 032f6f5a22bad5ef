import ReelNet

/// The address of a node, `http://HOST:PORT`, `https://HOST:PORT` or `HOST:PORT`, with the TLS client and token for it.
struct NodeAddress: Hashable, Sendable, CustomStringConvertible {
    private let origin: HTTPOrigin
    /// The authorities to trust; nil for requests without TLS.
    var tls: TLSClient?
    /// The token to send; nil for none.
    var token: String?

    init(_ url: String) throws(CommandError) {
        guard let origin = HTTPOrigin(url) else {
            throw CommandError(
                .usage,
                "`\(url)` is not an address of a node; expected is http://HOST:PORT or https://HOST:PORT"
            )
        }
        self.origin = origin
    }

    /// Compares the URLs only: TLS client and token are ignored.
    static func == (a: NodeAddress, b: NodeAddress) -> Bool { a.origin == b.origin }

    func hash(into hasher: inout Hasher) { hasher.combine(origin) }

    var isSecure: Bool { origin.isSecure }
    var host: String { origin.host }
    var port: UInt16 { origin.port }

    var description: String { origin.description }
}
