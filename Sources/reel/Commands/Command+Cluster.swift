import ReelCore
import ReelLog

extension Command {
    /// The nodes that there are.
    static let cluster = Command(
        "cluster",
        "show the nodes of a cluster, and how far each of them is",
        about: """
            Asks a node, or with --log the log itself, through which the nodes announce themselves every other second.
            SEEN says how old a node's last announcement is, and so what stands beside it (`age_ms` in JSON). A node
            that has gone is shown for ten minutes more: as `left` if it left in good order. LAG is how many records of
            the partition the node has not read (gateway) or folded (snapshot node).
            """,
        settings: NodeArguments.all + [
            LogArguments.log.saying(
                "ask this log instead of a node: sqlite:PATH or kafka:HOST:PORT,HOST:PORT",
                showsDefault: false
            ),
            KafkaArguments.properties, CommonSettings.json,
        ],
        examples: [
            Example("reel cluster", "what the node on this machine knows"),
            Example("reel cluster --log kafka:127.0.0.1:9092 --json", "from the log, a line of JSON for each node"),
        ]
    ) { options, console in
        let rows = try await ClusterRow.read(options, console).sorted { ($0.role, $0.id) < ($1.role, $1.id) }
        if options[CommonSettings.json] {
            for row in rows { try console.write(row.json) }
            return .done
        }
        if rows.isEmpty { console.note("no node has announced itself within the last ten minutes") }
        var table = TextTable(
            "NODE",
            "ROLE",
            "URL",
            "BUILD",
            "SEEN",
            "PARTITION",
            "SEQ",
            "LAG",
            numbers: ["PARTITION", "SEQ", "LAG"]
        )
        for row in rows {
            var head = [row.id, row.role, row.url, row.build, row.seen]
            // How far one was that has left says nothing any more.
            let places = row.hasLeft ? [] : row.partitions
            if places.isEmpty { table.add(row.id, row.role, row.url, row.build, row.seen, "-", "-", "-") }
            for place in places {
                table.add(
                    head[0],
                    head[1],
                    head[2],
                    head[3],
                    head[4],
                    "\(place.partition)",
                    "\(place.seq)",
                    "\(place.lag)"
                )
                head = ["", "", "", "", ""]
            }
        }
        if !rows.isEmpty { for line in table.lines { try console.print(line) } }
        return .done
    }
}
