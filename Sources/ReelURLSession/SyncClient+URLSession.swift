#if canImport(Darwin)
public import ReelClient
public import ReelCore

extension SyncClient {
    /// Creates a client of these nodes with its own `URLSessionTransport`. On Linux `ReelClient` has the same
    /// initializer, with another transport.
    ///
    /// - Parameters:
    ///   - nodes: the addresses of nodes, `http://HOST:PORT` or `https://HOST:PORT` each. Without nodes the client
    ///     works offline.
    ///   - store: the place for own events and received data.
    ///   - gaps: the source from which missing seqs are requested first.
    ///   - cacheBytes: the limit of the objects that the client holds in memory, in bytes. All other objects are read
    ///     from the store when they are needed. The limit is approximate, and at least 1 MiB.
    ///   - token: the token for nodes that have keys. A token of another user than the store's is never sent to a node.
    ///   - renewToken: returns tokens. It is called for the first token if there is none, for another token before the
    ///     present one expires, and when a node refuses the token.
    /// - Throws: `bad_address` for a node or a store's path that is not valid. A code that begins with `store_` if the
    ///   store cannot be opened.
    public init(
        nodes: [String],
        store: Store,
        gaps: GapSource = .connection,
        cacheBytes: Int = 16 << 20,
        token: String? = nil,
        renewToken: TokenSource? = nil
    ) throws(ReelError) {
        try self.init(
            nodes: nodes,
            store: store,
            transport: URLSessionTransport(),
            gaps: gaps,
            cacheBytes: cacheBytes,
            token: token,
            renewToken: renewToken
        )
    }
}
#endif
