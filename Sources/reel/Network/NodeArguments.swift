/// The settings of every command that speaks to nodes.
enum NodeArguments {
    static let url = Setting<[String]>.texts(
        "url",
        "URL",
        "a node, http://HOST:PORT; of several the first that answers; else the local one"
    )

    static let epoch = Setting<String?>.text("epoch", "HEX", "the epoch that the seqs belong to, 16 hex digits")

    /// The nodes that are meant, in the order in which they are to be asked.
    static func addresses(_ options: Options) throws(Complaint) -> [NodeAddress] {
        let urls = options[url]
        return try (urls.isEmpty ? ["http://127.0.0.1:7350"] : urls).map { url throws(Complaint) in
            try NodeAddress(url)
        }
    }
}
