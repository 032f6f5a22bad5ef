import ReelCore
import ReelNet

/// The settings of every command that speaks to nodes.
enum NodeArguments {
    static let url = Setting<[String]>.texts(
        "url",
        "URL",
        "a node, http://HOST:PORT; of several the first that answers; else the local one"
    )

    static let authorities = Setting<String?>.text(
        "ca",
        "FILE",
        "believe nodes at https:// that these authorities vouch for, as PEM; else the system's"
    )
    static let token = Setting<String?>.text(
        "token",
        "TOKEN",
        "who asks, where the nodes have keys; better in the variable, where other users do not see it"
    )

    /// What it takes to ask a node.
    static let all: [any AnySetting] = [url, authorities, token]

    static let outcome = Setting<Bool>.flag(
        "outcome",
        "say what each event came to; it is an error if no snapshot node tells it (`tail` tries again)"
    )

    static let epoch = Setting<Epoch?>.epoch("epoch", "the epoch that the seqs belong to, 16 hex digits")

    /// The nodes that are meant, in the order in which they are to be asked.
    static func addresses(_ options: Options) throws(CommandError) -> [NodeAddress] {
        let urls = options[url]
        // Also where none is secure: a file that is named must be there.
        if options[authorities] != nil { _ = try trust(options) }
        return try (urls.isEmpty ? ["http://127.0.0.1:7350"] : urls).map { url throws(CommandError) in
            try address(url, options)
        }
    }

    /// A node at this URL, asked as the settings say.
    static func address(_ url: String, _ options: Options) throws(CommandError) -> NodeAddress {
        var address = try NodeAddress(url)
        address.token = options[token]
        if address.isSecure { address.tls = try trust(options) }
        return address
    }

    /// Whom to believe at https://.
    static func trust(_ options: Options) throws(CommandError) -> TLSClient {
        do throws(NetError) {
            return try TLSClient(authorities: options[authorities])
        } catch {
            throw CommandError(InputFile.code(ofUseless: [options[authorities]]), error.message)
        }
    }
}
