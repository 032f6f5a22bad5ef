import ReelCore
import ReelNet

/// The settings of every command that sends requests to nodes.
enum NodeArguments {
    static let url = Setting<[String]>.texts(
        "url",
        "URL",
        "node, http://HOST:PORT; of several, the first that answers; default: the local one"
    )

    static let authorities = Setting<String?>.text(
        "ca",
        "FILE",
        "authorities to trust for https:// nodes, as PEM; default: those of the system"
    )
    static let token = Setting<String?>.text(
        "token",
        "TOKEN",
        "token, if the nodes have keys; use the variable to hide it from other users"
    )

    /// The settings that a request to a node needs.
    static let all: [any AnySetting] = [url, authorities, token]

    static let outcome = Setting<Bool>.flag(
        "outcome",
        "print the outcome of each event; an error if no snapshot node tells it (`tail` retries)"
    )

    static let epoch = Setting<Epoch?>.epoch("epoch", "epoch that the seqs belong to, 16 hex digits")

    /// Returns the addresses of the nodes, in the order in which they are asked.
    static func addresses(_ options: Options) throws(CommandError) -> [NodeAddress] {
        let urls = options[url]
        // Also without a secure node: a file that is given must be valid.
        if options[authorities] != nil { _ = try trust(options) }
        return try (urls.isEmpty ? ["http://127.0.0.1:7350"] : urls).map { url throws(CommandError) in
            try address(url, options)
        }
    }

    /// Returns the address of the node at `url`, with token and authorities from `options`.
    static func address(_ url: String, _ options: Options) throws(CommandError) -> NodeAddress {
        var address = try NodeAddress(url)
        address.token = options[token]
        if address.isSecure { address.tls = try trust(options) }
        return address
    }

    /// Returns the TLS client that trusts the authorities of `--ca`, else those of the system.
    static func trust(_ options: Options) throws(CommandError) -> TLSClient {
        do throws(NetError) {
            return try TLSClient(authorities: options[authorities])
        } catch {
            throw CommandError(InputFile.code(ofUseless: [options[authorities]]), error.message)
        }
    }
}
