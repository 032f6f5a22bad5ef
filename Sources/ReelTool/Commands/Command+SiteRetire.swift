import ReelBase
import ReelCore
import ReelLog
import ReelNode

extension Command {
    /// `reel site retire`: ends the idle sites of a stream.
    static let siteRetire = Command(
        "site retire",
        "end the idle sites of a stream, so that new devices can join",
        about: """
            Writes one record into the log. It ends every site of the stream without an event among the last N records
            of its partition. N counts the records of all streams in the partition: --dry-run shows which sites end,
            and their idle times. A site with a later event does not end, so devices can publish meanwhile. Nothing is
            deleted: objects, texts and the events in the log stay.

            A device whose site has ended takes a new site when it returns. It sends the events that it never handed to
            a node. For events that it has handed over without an answer, it is unknown whether they were applied: the
            device drops them and reports that to its app. So end only sites of devices that will not return, or that
            have nothing to send. This cannot be undone.

            The command folds the sites from the log; the time grows with the length of the log. With --url it asks a
            node instead, which also works if the beginning of the log was trimmed. Every node must have this build: a
            node of an older build does not know the record, stops before it, and reports that.
            """,
        operands: [Operand("STREAM")],
        settings: [
            LogArguments.log, KafkaArguments.properties, LogArguments.logFolder,
            NodeArguments.url.saying("read the sites from this node instead of folding the log, http://HOST:PORT"),
            NodeArguments.authorities, NodeArguments.token, idleEvents, CommonSettings.dryRun,
        ],
        required: [idleEvents],
        examples: [
            Example(
                "reel site retire todo --idle-events 1000000 --dry-run",
                "show the sites that would end; write nothing"
            ),
            Example("reel site retire todo --idle-events 1000000", "end them, in the log in ./reel-data"),
            Example(
                "reel site retire todo --idle-events 1000000 --log kafka:a:9092 --url http://a.example:7350",
                "the same in a long log on Kafka; the sites are read from a node"
            ),
        ]
    ) { options, console in
        let stream = try streamName(options.operands[0])
        let idle = Seq(try options.required(idleEvents))
        let log = try LogArguments.open(options, console)
        defer { log.close() }
        let listing: SiteListing
        if options[NodeArguments.url].isEmpty {
            listing = try SiteListing.folded(stream, log, console)
        } else {
            let caller = try await NodeCaller(try NodeArguments.addresses(options))
            listing = try await SiteListing(of: stream, from: caller)
            try checkThatItIsOf(log, listing)
        }
        let plan = try RetirementPlan(listing, idle: idle)
        for line in plan.lines(nowMs: WallClock.nowMs(), isDry: options[CommonSettings.dryRun]) {
            try console.print(line)
        }
        if options[CommonSettings.dryRun] || plan.ending.isEmpty { return .done }
        try console.flush()
        let seq = try SiteRetirement(log, stream: stream).run(before: plan.before, foldedTo: listing.seq)
        let detail = "\(plan.ending.count) sites of \(stream) end at seq \(seq)"
        console.audit("site retire", log: LogArguments.name(options), detail)
        try console.print("written at seq \(seq): these sites have ended, except those that have published meanwhile")
        return .done
    }

    private static func checkThatItIsOf(_ log: any EventLog, _ listing: SiteListing) throws(CommandError) {
        guard listing.epoch == log.epoch, listing.partition == listing.stream.partition(of: log.partitions) else {
            throw CommandError(
                .badData,
                "found a node of the log \(listing.epoch), expected one of \(log.epoch), which --log names: name a node"
                    + " of that log"
            )
        }
    }

    private static let idleEvents = Setting<Int?>.number(
        "idle-events",
        "N",
        1...Int(largestInteger),
        "end the sites without an event among the last N records of the stream's partition"
    )
}
