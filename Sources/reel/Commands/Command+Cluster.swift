import ReelCore
import ReelLog

extension Command {
    /// The nodes that there are.
    static let cluster = Command(
        "cluster",
        "show the nodes of a cluster, and how far each of them is",
        about: """
            Asks a node, or with --log the log itself, through which the nodes announce themselves every other second.
            SEEN says how old a node's last announcement is, and so how old all is that stands beside it (`age_ms` in
            JSON). STATE is `ready` if the node can serve, `not ready`, or `left` if it left in good order; a node that
            is gone is shown for ten more minutes. A node of `reel serve` has both roles, one after the other. LAG is
            how many records of the partition the role has not read (gateway) or folded (snapshot); where a role does
            not process a partition, the code of the reason stands beside it.
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
            "URL",
            "BUILD",
            "SEEN",
            "STATE",
            "ROLE",
            "PARTITION",
            "SEQ",
            "LAG",
            "PROBLEM",
            numbers: ["PARTITION", "SEQ", "LAG"]
        )
        for row in rows {
            var head = [row.id, row.url, row.build, row.seen, row.state]
            // How far a node was that has left says nothing any more.
            let places = row.hasLeft ? [] : row.places
            if places.isEmpty { table.add(head[0], head[1], head[2], head[3], head[4], row.role, "-", "-", "-", "") }
            var role = ""
            for place in places {
                table.add(
                    head[0],
                    head[1],
                    head[2],
                    head[3],
                    head[4],
                    place.role == role ? "" : place.role,
                    "\(place.partition)",
                    "\(place.seq)",
                    "\(place.lag)",
                    place.code ?? ""
                )
                role = place.role
                head = ["", "", "", "", ""]
            }
        }
        if !rows.isEmpty { for line in table.lines { try console.print(line) } }
        return .done
    }
}
