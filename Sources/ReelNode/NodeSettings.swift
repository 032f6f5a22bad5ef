import ReelCore
public import ReelNet

/// What an operator may set for any kind of node. Times are in milliseconds, sizes in bytes.
public struct NodeSettings: Sendable {
    /// The node's name among the others.
    public var id = Hex64.text(.random(in: .min ... .max))
    /// Where the node listens, `HOST:PORT`; port 0 takes a free one.
    public var listen = "127.0.0.1:7350"
    /// Where the node answers its operator, `HOST:PORT`; nil: where it answers clients.
    public var adminListen: String?
    /// The URL that clients are told; nil: none.
    public var advertise: String?
    /// The URL by which other nodes reach this one; nil: that of the address it listens on.
    public var nodeURL: String?
    /// The certificate and key with which the node speaks TLS; nil: it speaks plain.
    public var tls: TLSServer?
    /// Whom this node believes when it asks another one by `https`; nil: it asks none so.
    public var peerTLS: TLSClient?
    /// Who may do what; nil: everybody everything.
    public var tokens: TokenGate?
    /// Pages of these origins may use the node, `https://app.example`; `*` stands for all.
    public var allowedOrigins: Set<String> = []
    /// Event loops that share the port.
    public var loops = 1
    /// Open connections at most.
    public var connections = 20_000
    /// Open connections of one address at most; 0: as many as in all; nil: a tenth of all, and on this machine all.
    public var addressConnections: Int?
    /// The largest part of all connections that one client has by default.
    public var standardShareOfConnections: Int { max(64, connections / 10) }
    /// Proxies that are believed when they say for whom they ask.
    public var trustedProxies = AddressRanges()
    /// Connections that wait in the kernel until they are accepted.
    public var acceptQueue = 4_096
    /// Whether messages of sockets are packed for who offers permessage-deflate.
    public var deflates = true
    /// From the first byte of a request to the end of its head; of a connection, from its start, with TLS.
    public var handshakeMs: Int64 = 10_000
    /// From the end of a request's head to the end of its body.
    public var bodyMs: Int64 = 30_000
    /// Between two requests of a connection, and for a reader that takes nothing of an answer.
    public var idleMs: Int64 = 60_000
    /// With more resident memory nothing new is taken in; 0: there is no limit.
    public var memoryBytes = 0
    /// How much memory the process has.
    public var memoryUse: @Sendable () -> Int = ResidentMemory.bytes
    /// A request's head at most.
    public var headerBytes = 16 << 10
    /// A request's body at most.
    public var bodyBytes = 8 << 20
    /// Within so long clients leave a node that ends.
    public var drainSpreadMs: Int64 = 2_000
    /// What has not left by then is cut.
    public var drainLimitMs: Int64 = 8_000
    /// How often the node announces itself to the others.
    public var announceMs: Int64 = 2_000
    /// The version of the program.
    public var build = "0.1.0"
    /// The commit that the program was built from.
    public var commit = "unknown"
    /// The file of a log on SQLite; nil: the log is elsewhere.
    public var logFile: String?
    /// Folders whose disks are watched, by role: `log`, `data`.
    public var watchedFolders: [String: String] = [:]

    /// The defaults.
    public init() {}

    /// The URL by which other nodes reach this one, which listens on this address.
    public func url(_ address: SocketAddress) -> String {
        nodeURL ?? "\(tls == nil ? "http" : "https")://\(address)"
    }

    /// Reads the files of certificate and keys again; what cannot be used stays as it was.
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
    /// The server of one of the node's loops.
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
        // No browser takes an answer for another type than the one that it says, and no page of another origin can load
        // it as an image, a script or a style (Fetch Standard, 3.2 and 3.7). Pages that may use the node ask by CORS.
        fields = ["x-content-type-options": "nosniff", "cross-origin-resource-policy": "same-origin"]
    }
}
