import ReelNet

/// Where a node is, `http://HOST:PORT`, `https://HOST:PORT` or `HOST:PORT` alone, and how it is asked.
struct NodeAddress: Hashable, Sendable, CustomStringConvertible {
    private let origin: HTTPOrigin
    /// Whom to believe; nil: it is asked in the open.
    var tls: TLSClient?
    /// Who asks, where the node wants to know.
    var token: String?

    init(_ url: String) throws(CommandError) {
        guard let origin = HTTPOrigin(url) else {
            throw CommandError(
                .usage,
                "`\(url)` is no address of a node; expected is http://HOST:PORT or https://HOST:PORT"
            )
        }
        self.origin = origin
    }

    /// Whether it is the same place, however it is asked.
    static func == (a: NodeAddress, b: NodeAddress) -> Bool { a.origin == b.origin }

    func hash(into hasher: inout Hasher) { hasher.combine(origin) }

    var isSecure: Bool { origin.isSecure }
    var host: String { origin.host }
    var port: UInt16 { origin.port }

    var description: String { origin.description }
}
