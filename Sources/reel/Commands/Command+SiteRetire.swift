import ReelCore
import ReelLog
import ReelNode

extension Command {
    /// Ends the idle sites of a stream.
    static let siteRetire = Command(
        "site retire",
        "end the idle sites of a stream, so that new devices find room",
        about: """
            Writes one record into the log that ends every site of the stream without an event among the last N records
            of its partition. N counts the records of all streams in the partition: --dry-run shows what the number
            comes to, and how long ago that was. A site with a later event is not touched, so devices may publish
            meanwhile. Nothing is deleted: objects, texts and the events in the log stay.

            A device whose site was ended takes a new site when it returns. It sends what it never handed to a node
            before. Of what it had handed over and never saw again, nobody can say any more whether it counted: the
            device drops that, and tells its app. So end only sites of devices that will not return, or have nothing to
            send. There is no way back.

            The sites are folded from the log, which takes longer the longer the log is. With --url a node that has
            folded them is asked instead, also where the beginning of the log was trimmed. Every node must be of this
            build: one of an older build does not know the record, stops before it, and says so.
            """,
        operands: [Operand("STREAM")],
        settings: [
            LogArguments.log, KafkaArguments.properties, LogArguments.logFolder,
            NodeArguments.url.saying("read the sites from this node instead of folding the log"),
            NodeArguments.authorities, NodeArguments.token, idleEvents, CommonSettings.dryRun,
        ],
        required: [idleEvents],
        examples: [
            Example(
                "reel site retire todo --idle-events 1000000 --dry-run",
                "the sites that would end; writes nothing"
            ),
            Example("reel site retire todo --idle-events 1000000", "end them, in the log in ./reel-data"),
            Example(
                "reel site retire todo --idle-events 1000000 --log kafka:a:9092 --url http://a.example:7350",
                "the same in a long log on Kafka: a node says which sites there are"
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
        try console.print("written at seq \(seq): these sites have ended, but for those that wrote meanwhile")
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
        "end the sites that wrote none of the last N records of the stream's partition"
    )
}
