import ReelBase
import ReelCore
import ReelLog
import ReelNode

extension Command {
    /// `reel site list`: the sites of a stream.
    static let siteList = Command(
        "site list",
        "show the sites of a stream, the most idle first",
        about: """
            A site is one device in one stream. A stream has at most 100,000 sites that have not ended. The command asks
            a node; if the nodes have keys, the token needs the right `inspect`. With --log it folds the log itself; the
            time grows with the length of the log.

            IDLE SEQS is the number of records after the site's last event, of all streams in the partition. IDLE TIME
            is the age of that event by the gateway's clock; it is unknown if the node's index no longer has the event.
            OP is the last consumed op of the site, and ENDED AT is the seq at which the site ended.
            """,
        operands: [Operand("STREAM")],
        settings: NodeArguments.all + [
            LogArguments.log.saying(
                "fold this log instead of asking a node: sqlite:PATH or kafka:HOST:PORT,HOST:PORT",
                showsDefault: false
            ),
            KafkaArguments.properties, limit, onlyEnded, CommonSettings.json,
        ],
        examples: [
            Example("reel site list todo", "the hundred most idle sites"),
            Example("reel site list todo --limit 1000000 --json", "all sites, one line of JSON each"),
            Example("reel site list todo --log sqlite:reel-data/log.sqlite", "from the log, without a node"),
        ]
    ) { options, console in
        let stream = try streamName(options.operands[0])
        let isWanted: (ListedSite) -> Bool = { ($0.end != .none) == options[onlyEnded] }
        let listing: SiteListing
        if options[LogArguments.log] != nil {
            let log = try LogArguments.open(options, console)
            defer { log.close() }
            listing = try SiteListing.folded(stream, log, console)
        } else {
            let caller = try await NodeCaller(try NodeArguments.addresses(options))
            listing = try await SiteListing(of: stream, from: caller) { sites in
                sites.count(where: isWanted) >= options[limit]
            }
        }
        if listing.sites.isEmpty, options[LogArguments.log] == nil {
            let caller = try await NodeCaller(try NodeArguments.addresses(options))
            if let text = await MissingStream.textIfMissing(stream, caller) { throw CommandError(.failed, text) }
        }
        try listing.checkThatItIsThere()
        let (shown, nowMs) = (listing.sites.filter(isWanted).prefix(options[limit]), WallClock.nowMs())
        if options[CommonSettings.json] {
            for site in shown { try console.write(listing.json(of: site, nowMs: nowMs)) }
            return .done
        }
        try console.print(listing.summary)
        if !shown.isEmpty { for line in listing.table(shown, nowMs: nowMs) { try console.print(line) } }
        return .done
    }

    private static let limit = Setting<Int>.number("limit", "N", 1...Int.max, default: 100, "maximum number of sites")
    private static let onlyEnded = Setting<Bool>.flag("ended", "show the ended sites instead")
}
