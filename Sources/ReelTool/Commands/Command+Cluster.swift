import ReelCore
import ReelLog

extension Command {
    /// `reel cluster`: the list of nodes.
    static let cluster = Command(
        "cluster",
        "show the nodes of a cluster, and their positions in the log",
        about: """
            Asks a node or, with --log, the log itself: nodes announce themselves in it every two seconds. Prints a line
            for each node; with --by-partition a line for each partition of each node. SEEN is the age of the node's
            last announcement, and so of all values in its line (`age_ms` in JSON).

            STATE is `ready` or `not ready`, `leaving` or `left` after a drain, and `dead` if the node has not announced
            itself for ten seconds although others have. Nodes that have left or are dead are listed last, for ten
            minutes. A node is not shown if another node has taken over its URL. ROLE `serve` is gateway and snapshot
            node in one.

            LAG is the largest number of records of a partition that the node has not read (gateway) or folded
            (snapshot). It is measured against the positions that were announced before the node's own announcement, so
            the real lag can be larger. With --log it is measured against the end of the log at the start of the
            command, which then takes up to three seconds. PROBLEM names partitions that the node does not process, and
            announcements that cannot be true.
            """,
        settings: NodeArguments.all + [
            LogArguments.log.saying(
                "ask this log instead of a node: sqlite:PATH or kafka:HOST:PORT,HOST:PORT",
                showsDefault: false
            ),
            KafkaArguments.properties, byPartition, CommonSettings.json,
        ],
        examples: [
            Example("reel cluster", "what the node on this machine knows"),
            Example("reel cluster --by-partition", "the position of each node in each partition"),
            Example("reel cluster --log kafka:127.0.0.1:9092 --json", "from the log, a line of JSON for each node"),
        ]
    ) { options, console in
        let rows = try await ClusterRow.read(options, console).sorted(by: ClusterRow.isBefore)
        if options[CommonSettings.json] {
            for row in rows { try console.write(row.json) }
            return .done
        }
        let shown = rows.filter { $0.state != .replaced }
        if shown.isEmpty { console.note("no node has announced itself within the last ten minutes") }
        if let newestMs = rows.compactMap(\.ageMs).min(), newestMs >= ClusterRow.patienceMs {
            console.note("no node has announced itself for \(age(ms: newestMs)): the table is as old as that")
        }
        let table = options[byPartition] ? partitionTable(shown) : nodeTable(shown)
        if !shown.isEmpty { for line in table.lines { try console.print(line) } }
        return .done
    }

    private static let byPartition = Setting<Bool>.flag("by-partition", "show each node's position in each partition")

    private static func nodeTable(_ rows: [ClusterRow]) -> TextTable {
        var table = TextTable(
            "ROLE",
            "URL",
            "STATE",
            "SEEN",
            "BUILD",
            "PARTITIONS",
            "LAG",
            "NODE",
            "PROBLEM",
            numbers: ["PARTITIONS", "LAG"]
        )
        for row in rows {
            table.add(
                row.role,
                row.url,
                row.state.rawValue,
                row.seen,
                row.build,
                row.isThere ? "\(row.partitionCount)" : "-",
                row.largestLag.map { "\($0)" } ?? "-",
                row.id,
                row.problem
            )
        }
        return table
    }

    private static func partitionTable(_ rows: [ClusterRow]) -> TextTable {
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
            var head = [row.id, row.url, row.build, row.seen, row.state.rawValue]
            // The positions of a node that has left are obsolete.
            let places = row.isThere ? row.places : []
            if places.isEmpty { table.add(head + [row.role, "-", "-", "-", row.fault ?? ""]) }
            var role = ""
            for place in places {
                let problem = place.code ?? (place.lag == nil ? row.fault : nil) ?? ""
                let lag = place.lag.map { "\($0)" } ?? "-"
                table.add(
                    head + [place.role == role ? "" : place.role, "\(place.partition)", "\(place.seq)", lag, problem]
                )
                role = place.role
                head = ["", "", "", "", ""]
            }
        }
        return table
    }
}
