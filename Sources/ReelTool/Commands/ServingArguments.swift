import ReelNet
import ReelNode

/// The settings of every command that runs a node. Settings of one kind of node are in its command.
enum ServingArguments {
    static let listen = Setting<String>.text(
        "listen",
        "HOST:PORT",
        default: "127.0.0.1:7350",
        "address and port to listen on; port 0 takes a free port"
    )
    static let adminListen = Setting<String?>.text(
        "admin-listen",
        "HOST:PORT",
        "separate address that alone answers /metrics, /v1/cluster and details of /readyz"
    )
    static let advertise = Setting<String?>.text(
        "advertise",
        "URL",
        "URL of this node for clients; without it, gateways do not name this node to them"
    )
    static let nodeURL = Setting<String?>.text(
        "node-url",
        "URL",
        "URL of this node for other nodes; default: the address of --listen"
    )

    static let loops = Setting<Int>.number(
        "loops",
        "N",
        1...64,
        default: 2,
        "number of event loops, each on its own thread"
    )
    static let connections = Setting<Int>.number(
        "connections-max",
        "N",
        1...1_000_000,
        default: 20_000,
        "maximum open connections of the node"
    )
    static let addressConnections = Setting<Int?>.number(
        "connections-per-address",
        "N",
        0...1_000_000,
        "maximum connections per address; default: a tenth of all, except loopback; 0: no limit"
    )
    static let trustedProxies = Setting<String?>.text(
        "trusted-proxies",
        "LIST",
        "proxies (such as 10.0.0.0/8,::1) whose PROXY or Forwarded header is trusted"
    )
    static let acceptQueue = Setting<Int>.number(
        "listen-backlog",
        "N",
        1...65_535,
        default: 4_096,
        "connections that can wait to be accepted; somaxconn also limits them"
    )
    static let handshakeMs = Setting<Int>.number(
        "handshake-ms",
        "N",
        100...600_000,
        default: 10_000,
        "timeout for the TLS handshake, the request head and the hello frame"
    )
    static let bodyMs = Setting<Int>.number(
        "body-ms",
        "N",
        100...3_600_000,
        default: 30_000,
        "timeout for the body of a request, from the end of its head"
    )
    static let idleMs = Setting<Int>.number(
        "idle-ms",
        "N",
        1_000...3_600_000,
        default: 60_000,
        "timeout of an HTTP connection without a request, or with unread output"
    )
    static let drainMs = Setting<Int>.number(
        "drain-ms",
        "N",
        1_000...600_000,
        default: 8_000,
        "time limit of a drain after SIGTERM; clients leave in its first quarter"
    )
    static let headerBytes = Setting<Int>.number(
        "header-bytes",
        "N",
        (8 << 10)...(1 << 20),
        default: 16 << 10,
        "maximum bytes of a request's head"
    )
    static let bodyBytes = Setting<Int>.number(
        "body-bytes",
        "N",
        (64 << 10)...(1 << 30),
        default: 8 << 20,
        "maximum bytes of a request's body"
    )
    static let memoryBytes = Setting<Int?>.number(
        "memory-max-bytes",
        "N",
        0...(1 << 50),
        "above this memory: no new connections or large messages; default: 3/4; 0: no limit"
    )

    static let logLevel = Setting<Logger.Level>.word(
        "log-level",
        "LEVEL",
        default: .info,
        Logger.Level.allCases.filter { $0 != .audit },
        "lowest level of log lines: debug, info, warning or error"
    ) { "\($0)" }
    static let logFormat = Setting<Logger.Format>.word(
        "log-format",
        "FORMAT",
        default: .text,
        Logger.Format.allCases,
        "format of log lines: text (key=value) or json"
    ) { $0.rawValue }

    static let certificate = Setting<String?>.text(
        "tls-cert",
        "FILE",
        "certificate for TLS and its chain, as PEM; read again at SIGHUP"
    )
    static let key = Setting<String?>.text(
        "tls-key",
        "FILE",
        "private key of the certificate, as PEM; read again at SIGHUP"
    )
    static let keys = Setting<String?>.text(
        "jwks",
        "FILE",
        "JWK Set with the keys that verify tokens; with it every client needs a token"
    )
    static let issuer = Setting<String?>.text("token-issuer", "ISS", "accept only tokens with this `iss`")
    static let audience = Setting<String?>.text("token-audience", "AUD", "accept only tokens with this `aud`")
    static let origins = Setting<[String]>.texts(
        "allow-origin",
        "URL",
        "allow browser pages of this origin (https://app.example); `*`: all pages"
    )
    static let insecure = Setting<Bool>.flag(
        "insecure",
        "allow other machines without --jwks: every client can read and write everything"
    )

    /// All settings of a node, with those of its log.
    static let all: [any AnySetting] =
        [
            listen, adminListen, advertise, nodeURL, certificate, key, NodeArguments.authorities, keys, issuer,
            audience, insecure,
            origins,
        ]
        + LogArguments.all + [
            loops, connections, addressConnections, trustedProxies, acceptQueue, memoryBytes, headerBytes, bodyBytes,
            handshakeMs,
            bodyMs, idleMs, drainMs, logLevel, logFormat,
        ]

    /// Returns the settings that `options` describe for any kind of node.
    ///
    /// - Throws: a `CommandError` if a value is wrong, or a file cannot be used.
    static func nodeSettings(_ options: Options) throws(CommandError) -> NodeSettings {
        let listenAddress = try address("--listen", options[listen], example: "127.0.0.1:7350")
        if let admin = options[adminListen] {
            let adminAddress = try address("--admin-listen", admin, example: "127.0.0.1:7360")
            guard adminAddress != listenAddress || listenAddress.port == 0 else {
                throw CommandError(
                    .usage,
                    "--admin-listen is `\(admin)`, which is the address of --listen; expected is another port"
                )
            }
        }
        if let url = options[nodeURL] { _ = try NodeAddress(url) }
        if let url = options[advertise], !["http://", "https://"].contains(where: { url.hasPrefix($0) }) {
            throw CommandError(.usage, "--advertise is `\(url)`; expected is a URL such as https://reel.example")
        }
        if let wrong = options[origins].first(where: { !OriginRules.isOrigin($0) }) {
            throw CommandError(
                .usage,
                "--allow-origin is `\(wrong)`; expected is an origin such as https://app.example"
            )
        }
        var settings = NodeSettings()
        settings.allowedOrigins = Set(options[origins])
        settings.listen = options[listen]
        settings.adminListen = options[adminListen]
        settings.advertise = options[advertise]
        settings.nodeURL = options[nodeURL]
        settings.loops = options[loops]
        settings.connections = options[connections]
        settings.addressConnections = options[addressConnections]
        do throws(NetError) {
            settings.trustedProxies = try AddressRanges(parsing: options[trustedProxies] ?? "")
        } catch {
            throw CommandError(.usage, "--trusted-proxies: \(error.message)")
        }
        settings.acceptQueue = options[acceptQueue]
        settings.handshakeMs = Int64(options[handshakeMs])
        settings.bodyMs = Int64(options[bodyMs])
        settings.idleMs = Int64(options[idleMs])
        settings.drainLimitMs = Int64(options[drainMs])
        settings.drainSpreadMs = settings.drainLimitMs / 4
        settings.headerBytes = options[headerBytes]
        settings.bodyBytes = options[bodyBytes]
        settings.memoryBytes = options[memoryBytes] ?? MemoryLimit.standard
        let resident = settings.memoryUse()
        guard settings.memoryBytes == 0 || settings.memoryBytes > resident else {
            throw CommandError(
                .usage,
                "--memory-max-bytes is \(settings.memoryBytes), but the process already uses \(resident) bytes;"
                    + " expected is more, or 0 for no limit"
            )
        }
        settings.build = Version.number
        settings.commit = Version.commit
        if LogArguments.name(options).hasPrefix("sqlite:") {
            let file = String(LogArguments.name(options).dropFirst("sqlite:".count))
            settings.logFile = file
            let folder = file.lastIndex(of: "/").map { String(file[..<$0]) } ?? "."
            settings.watchedFolders["log"] = folder.isEmpty ? "/" : folder
        }
        try secure(&settings, options)
        return settings
    }

    /// Parses `text`, the address that the setting `name` has. The error names the setting and shows `example`.
    private static func address(_ name: String, _ text: String, example: String) throws(CommandError) -> SocketAddress {
        guard SocketAddress.split(text) != nil else {
            throw CommandError(
                .usage,
                "\(name) is `\(text)`; expected is HOST:PORT with a port from 0 to 65535, such as \(example)"
            )
        }
        do throws(NetError) {
            return try SocketAddress(parsing: text)
        } catch {
            throw CommandError(
                .usage,
                "\(name) is `\(text)`; expected is an IPv4 or IPv6 address of this machine, or localhost, such as"
                    + " \(example)"
            )
        }
    }

    private static func secure(_ settings: inout NodeSettings, _ options: Options) throws(CommandError) {
        guard (options[certificate] == nil) == (options[key] == nil) else {
            throw CommandError(.usage, "--tls-cert and --tls-key need each other; one of them is missing")
        }
        do throws(NetError) {
            if let certificate = options[certificate], let key = options[key] {
                settings.tls = try TLSServer(certificateFile: certificate, keyFile: key)
            }
            if settings.tls != nil || options[NodeArguments.authorities] != nil {
                settings.peerTLS = try TLSClient(authorities: options[NodeArguments.authorities])
            }
        } catch {
            let files = [options[certificate], options[key], options[NodeArguments.authorities]]
            throw CommandError(InputFile.code(ofUseless: files), error.message)
        }
        if let file = options[keys] {
            do throws(TokenRefusal) {
                settings.tokens = try TokenGate(file: file, issuer: options[issuer], audience: options[audience])
            } catch {
                throw CommandError(InputFile.code(ofUseless: [file]), error.description)
            }
        } else if options[issuer] != nil || options[audience] != nil {
            throw CommandError(.usage, "--token-issuer and --token-audience need --jwks")
        } else if !options[insecure] {
            for (name, address) in [("--listen", settings.listen), ("--admin-listen", settings.adminListen)] {
                guard let address, (try? SocketAddress(parsing: address))?.isLoopback == false else { continue }
                throw CommandError(
                    .usage,
                    "\(name) \(address) is open to other machines, and without --jwks any client can read and write;"
                        + " expected is --jwks FILE, or --insecure to allow that"
                )
            }
        }
    }
}
