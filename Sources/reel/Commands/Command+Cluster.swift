import ReelCore
import ReelLog

extension Command {
    /// The nodes that there are.
    static let cluster = Command(
        "cluster",
        "show the nodes of a cluster, and how far each of them is",
        about: """
            Asks a node, or with --log the log itself, through which the nodes announce themselves every other second.
            One line for each node; with --by-partition one for each partition of each node. SEEN says how old a node's
            last announcement is, and so how old all is that stands beside it (`age_ms` in JSON).

            STATE is `ready` if the node can serve, `not ready`, `leaving` or `left` if it leaves in good order, and
            `dead` if it has announced nothing for ten seconds though others have. Nodes that are gone are shown for
            ten minutes, behind the others; a node whose URL another one has taken over is not shown. `serve` is both
            gateway and snapshot node. LAG is the largest number of records of a partition that a role of the node has
            not read (gateway) or folded (snapshot). It counts what was announced before the node's own announcement,
            so the true lag may be larger by what came since. With --log it counts what the log had when the command
            began, which takes up to three seconds. PROBLEM names what a node does not process, and announcements that
            cannot be true.
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
            Example("reel cluster --by-partition", "how far each node is in each partition"),
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
            console.note("no node has announced itself for \(age(ms: newestMs)): what follows was true then")
        }
        let table = options[byPartition] ? partitionTable(shown) : nodeTable(shown)
        if !shown.isEmpty { for line in table.lines { try console.print(line) } }
        return .done
    }

    private static let byPartition = Setting<Bool>.flag("by-partition", "show how far each node is in each partition")

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
            // How far a node was that is gone says nothing any more.
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
