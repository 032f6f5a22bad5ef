import ReelCore
public import ReelNet

/// The settings of any kind of node that an operator may change. Times are in milliseconds, sizes in bytes.
public struct NodeSettings: Sendable {
    /// The node's id in the cluster.
    public var id = Hex64.text(.random(in: .min ... .max))
    /// The address where the node listens, `HOST:PORT`; port 0 takes a free port.
    public var listen = "127.0.0.1:7350"
    /// The address of the operator's port, `HOST:PORT`; nil: operators use the clients' port.
    public var adminListen: String?
    /// The URL that clients get for this node; nil: none.
    public var advertise: String?
    /// The URL by which other nodes reach this one; nil: the URL of its address.
    public var nodeURL: String?
    /// The certificate and key for TLS; nil: the node listens without TLS.
    public var tls: TLSServer?
    /// The trust settings for `https` requests to other nodes; nil: the node makes no such requests.
    public var peerTLS: TLSClient?
    /// The check of tokens; nil: every client has all rights.
    public var tokens: TokenGate?
    /// The origins of web pages that may use the node, such as `https://app.example`; `*` means all.
    public var allowedOrigins: Set<String> = []
    /// The number of event loops that share the port.
    public var loops = 1
    /// The maximum number of open connections.
    public var connections = 20_000
    /// The maximum number of open connections per address; 0: the same as `connections`. Nil:
    /// `standardShareOfConnections`, and on this machine no limit per address.
    public var addressConnections: Int?
    /// The default maximum number of connections per client.
    public var standardShareOfConnections: Int { max(64, connections / 10) }
    /// The proxies that are trusted to report the addresses of their clients.
    public var trustedProxies = AddressRanges()
    /// The maximum number of connections that wait in the kernel to be accepted.
    public var acceptQueue = 4_096
    /// True if WebSocket messages are compressed for clients that offer permessage-deflate.
    public var deflates = true
    /// The timeout from the first byte of a request to the end of its head; for the first request of a connection from
    /// its start, with TLS.
    public var handshakeMs: Int64 = 10_000
    /// The timeout from the end of a request's head to the end of its body.
    public var bodyMs: Int64 = 30_000
    /// The timeout between two requests of a connection, and of a client that reads nothing of a response.
    public var idleMs: Int64 = 60_000
    /// The resident memory above which the node accepts nothing new; 0: no limit.
    public var memoryBytes = 0
    /// Returns the memory that the process uses.
    public var memoryUse: @Sendable () -> Int = ResidentMemory.bytes
    /// The maximum size of a request's head.
    public var headerBytes = 16 << 10
    /// The maximum size of a request's body.
    public var bodyBytes = 8 << 20
    /// The time over which the clients leave a node that ends.
    public var drainSpreadMs: Int64 = 2_000
    /// The time after which the remaining connections are closed.
    public var drainLimitMs: Int64 = 8_000
    /// The interval of the node's announcements.
    public var announceMs: Int64 = 2_000
    /// The version of the program.
    public var build = "0.1.0"
    /// The commit that the program was built from.
    public var commit = "unknown"
    /// The file of a log on SQLite; nil: the log is elsewhere.
    public var logFile: String?
    /// The folders of which the disks are watched, by role: `log`, `data`.
    public var watchedFolders: [String: String] = [:]

    /// The default settings.
    public init() {}

    /// Returns the URL by which other nodes reach this one if it listens on `address`.
    public func url(_ address: SocketAddress) -> String {
        nodeURL ?? "\(tls == nil ? "http" : "https")://\(address)"
    }

    /// Reads the files of the certificate and the keys again. A file that cannot be used leaves the previous state.
    func reload(_ logger: Logger) {
        if tls == nil, tokens == nil {
            logger.info("nothing to read again", ["detail": "this node has no certificate and no keys"])
        }
        if let tls {
            do throws(NetError) {
                try tls.reload()
                logger.info("certificate read again", ["file": tls.certificateFile])
            } catch {
                logger.error("the certificate stays as it was", ["detail": error.message])
            }
        }
        if let tokens {
            do throws(TokenRefusal) {
                try tokens.reload()
                logger.info("keys read again", ["file": tokens.file])
                tokens.warnOfSecrets(logger)
            } catch {
                logger.error("the keys stay as they were", ["detail": error.description])
            }
        }
    }
}

extension HTTPServer.Settings {
    /// The settings of the server of one of the node's loops.
    public init(_ node: NodeSettings) {
        self.init()
        acceptQueue = node.acceptQueue
        trustedProxies = node.trustedProxies
        deflates = node.deflates
        headDeadline = .milliseconds(node.handshakeMs)
        bodyDeadline = .milliseconds(node.bodyMs)
        idleDeadline = .milliseconds(node.idleMs)
        limits.head = node.headerBytes
        limits.body = node.bodyBytes
        tls = node.tls
        // Browsers accept a response only with its stated type. Pages of other origins cannot load it as an image, a
        // script or a style (Fetch Standard, 3.2 and 3.7). Pages that may use the node use CORS.
        fields = ["x-content-type-options": "nosniff", "cross-origin-resource-policy": "same-origin"]
    }
}
