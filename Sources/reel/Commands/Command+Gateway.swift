import ReelGateway
import ReelLog
import ReelNode

extension Command {
    /// A gateway in this process.
    static let gateway = Command(
        "gateway",
        "run a gateway: clients in front, the log behind",
        about: """
            Serves the socket and the HTTP interface on one port. It holds nothing that matters: kill it, and clients
            go on at another one. The first line on standard output is `listening on HOST:PORT`; what happens then
            goes to standard error, one line each. SIGTERM sends the clients away and ends; a second one ends at once.
            """,
        settings: [LogArguments.log, LogArguments.data, LogArguments.partitions] + ServingArguments.all,
        examples: [
            Example("reel gateway --log sqlite:log.sqlite", "on 127.0.0.1:7350"),
            Example("reel gateway --listen 0.0.0.0:7350 --advertise http://a.example:7350", "for clients elsewhere"),
        ]
    ) { options, console in
        let log = try LogArguments.open(options, ifAbsent: .make)
        defer { log.close() }
        let gateway = try Gateway(log: log, settings: ServingArguments.settings(options))
        gateway.endOnSignals()
        try console.print("listening on \(gateway.address)")
        try console.flush()
        await gateway.waitUntilEnded()
        return .done
    }
}

/// Settings of the commands that listen for clients.
enum ServingArguments {
    static let listen = Setting<String>.text(
        "listen",
        "HOST:PORT",
        default: "127.0.0.1:7350",
        "where to listen; port 0 takes a free one"
    )
    static let advertise = Setting<String?>.text("advertise", "URL", "the address that clients are told")
    static let nodeURL = Setting<String?>.text("node-url", "URL", "the address by which other nodes reach this one")
    static let loops = Setting<Int>.number(
        "loops",
        "N",
        1...64,
        default: 2,
        "event loops, each on a thread of its own"
    )
    static let connections = Setting<Int>.number(
        "connections",
        "N",
        1...1_000_000,
        default: 20_000,
        "connections at a time"
    )

    static let all: [any AnySetting] = [listen, advertise, nodeURL, loops, connections]

    /// A gateway's settings, as the command line says them.
    static func settings(_ options: Options) -> GatewaySettings {
        var settings = GatewaySettings()
        settings.node.listen = options[listen]
        settings.node.advertise = options[advertise]
        settings.node.nodeURL = options[nodeURL]
        settings.node.loops = options[loops]
        settings.node.connections = options[connections]
        settings.node.build = Version.number
        return settings
    }
}
