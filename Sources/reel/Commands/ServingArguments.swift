import ReelNet
import ReelNode

/// The settings of every command that runs a node; what only one kind of node has stands in its command.
enum ServingArguments {
    static let listen = Setting<String>.text(
        "listen",
        "HOST:PORT",
        default: "127.0.0.1:7350",
        "where the node listens; port 0 takes a free one"
    )
    static let adminListen = Setting<String?>.text(
        "admin-listen",
        "HOST:PORT",
        "answer /metrics, /v1/cluster and the detail of /readyz here, and only here"
    )
    static let advertise = Setting<String?>.text(
        "advertise",
        "URL",
        "where clients reach this node from outside; they are told nothing else"
    )
    static let nodeURL = Setting<String?>.text(
        "node-url",
        "URL",
        "where other nodes reach this one; else the address that it listens on"
    )

    static let loops = Setting<Int>.number(
        "loops",
        "N",
        1...64,
        default: 2,
        "event loops, each on a thread of its own"
    )
    static let connections = Setting<Int>.number(
        "connections-max",
        "N",
        1...1_000_000,
        default: 20_000,
        "connections at a time"
    )
    static let addressConnections = Setting<Int?>.number(
        "connections-per-address",
        "N",
        0...1_000_000,
        "connections of one address; else a tenth of all, for other machines; 0: no limit"
    )
    static let trustedProxies = Setting<String?>.text(
        "trusted-proxies",
        "LIST",
        "addresses and networks (10.0.0.0/8,::1) whose PROXY or Forwarded header is believed"
    )
    static let acceptQueue = Setting<Int>.number(
        "listen-backlog",
        "N",
        1...65_535,
        default: 4_096,
        "connections that wait to be accepted; the kernel's somaxconn holds, too"
    )
    static let handshakeMs = Setting<Int>.number(
        "handshake-ms",
        "N",
        100...600_000,
        default: 10_000,
        "within so long TLS, a request's head and a socket's `hello` are done"
    )
    static let bodyMs = Setting<Int>.number(
        "body-ms",
        "N",
        100...3_600_000,
        default: 30_000,
        "within so long behind its head a request's body is there"
    )
    static let idleMs = Setting<Int>.number(
        "idle-ms",
        "N",
        1_000...3_600_000,
        default: 60_000,
        "after so long without a request, or an answer unread, HTTP ends"
    )
    static let drainMs = Setting<Int>.number(
        "drain-ms",
        "N",
        1_000...600_000,
        default: 8_000,
        "at SIGTERM clients leave in a quarter of it, and are cut at its end"
    )
    static let headerBytes = Setting<Int>.number(
        "header-bytes",
        "N",
        (8 << 10)...(1 << 20),
        default: 16 << 10,
        "a request's head at most"
    )
    static let bodyBytes = Setting<Int>.number(
        "body-bytes",
        "N",
        (64 << 10)...(1 << 30),
        default: 8 << 20,
        "a request's body at most"
    )
    static let memoryBytes = Setting<Int?>.number(
        "memory-max-bytes",
        "N",
        0...(1 << 50),
        "with more memory nothing new or large is taken; else 3/4 of what there is; 0: no limit"
    )

    static let logLevel = Setting<Logger.Level>.word(
        "log-level",
        "LEVEL",
        default: .info,
        Logger.Level.allCases.filter { $0 != .audit },
        "the least level of journal lines: debug, info, warning, error"
    ) { "\($0)" }
    static let logFormat = Setting<Logger.Format>.word(
        "log-format",
        "FORMAT",
        default: .text,
        Logger.Format.allCases,
        "lines of the journal as text (key=value) or json"
    ) { $0.rawValue }

    static let certificate = Setting<String?>.text(
        "tls-cert",
        "FILE",
        "speak TLS with this certificate and its chain, as PEM; read again at SIGHUP"
    )
    static let key = Setting<String?>.text("tls-key", "FILE", "the private key of the certificate, as PEM")
    static let keys = Setting<String?>.text(
        "jwks",
        "FILE",
        "the keys that sign tokens, a JWK Set; a node with keys takes nobody without a token"
    )
    static let issuer = Setting<String?>.text("token-issuer", "ISS", "take only tokens with this `iss`")
    static let audience = Setting<String?>.text("token-audience", "AUD", "take only tokens with this `aud`")
    static let origins = Setting<[String]>.texts(
        "allow-origin",
        "URL",
        "let pages of this origin (https://app.example) use the node; `*` for all"
    )
    static let insecure = Setting<Bool>.flag(
        "insecure",
        "listen for other machines without --jwks: everybody may read and write everything"
    )

    /// All of them, with those of the log.
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

    /// What the options say for any kind of node.
    static func nodeSettings(_ options: Options) throws(CommandError) -> NodeSettings {
        let place = try address("--listen", options[listen], example: "127.0.0.1:7350")
        if let admin = options[adminListen] {
            let adminPlace = try address("--admin-listen", admin, example: "127.0.0.1:7360")
            guard adminPlace != place || place.port == 0 else {
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
                "--memory-max-bytes is \(settings.memoryBytes), and the process has \(resident) before it takes any;"
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

    /// The address of a setting; throws a complaint that names the setting.
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
                "\(name) is `\(text)`; expected is an IPv4 or IPv6 address of this machine, no name but localhost, such"
                    + " as \(example)"
            )
        }
    }

    private static func secure(_ settings: inout NodeSettings, _ options: Options) throws(CommandError) {
        guard (options[certificate] == nil) == (options[key] == nil) else {
            throw CommandError(.usage, "--tls-cert and --tls-key belong together; one of them is missing")
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
            throw CommandError(.usage, "--token-issuer and --token-audience mean nothing without --jwks")
        } else if !options[insecure] {
            for (name, place) in [("--listen", settings.listen), ("--admin-listen", settings.adminListen)] {
                guard let place, (try? SocketAddress(parsing: place))?.isLoopback == false else { continue }
                throw CommandError(
                    .usage,
                    "\(name) \(place) is open to other machines, and without --jwks to everybody on them; expected is"
                        + " --jwks FILE, or --insecure where that is meant"
                )
            }
        }
    }
}
