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
        "connections",
        "N",
        1...1_000_000,
        default: 20_000,
        "connections at a time"
    )

    /// All of them, with those of the log.
    static let all: [any AnySetting] = [listen, advertise, nodeURL] + LogArguments.all + [loops, connections]

    /// What the options say for any kind of node.
    static func nodeSettings(_ options: Options) throws(Complaint) -> NodeSettings {
        guard SocketAddress.split(options[listen]) != nil else {
            throw Complaint(.usage, "--listen is `\(options[listen])`; expected is HOST:PORT, such as 127.0.0.1:7350")
        }
        if let url = options[nodeURL] { _ = try NodeAddress(url) }
        if let url = options[advertise], !["http://", "https://"].contains(where: { url.hasPrefix($0) }) {
            throw Complaint(.usage, "--advertise is `\(url)`; expected is a URL such as https://reel.example")
        }
        var settings = NodeSettings()
        settings.listen = options[listen]
        settings.advertise = options[advertise]
        settings.nodeURL = options[nodeURL]
        settings.loops = options[loops]
        settings.connections = options[connections]
        settings.build = Version.number
        return settings
    }
}
