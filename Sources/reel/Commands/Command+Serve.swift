import ReelGateway
import ReelLog
import ReelNode
import ReelSnapshot

extension Command {
    /// Both kinds of node in this process.
    static let serve = Command(
        "serve",
        "run a gateway and a snapshot node in one process",
        about: """
            All that one box needs: the log, the gateway in front of it and the folded state behind it, on one port.
            The first line on standard output is `listening on HOST:PORT`; what happens then goes to standard error,
            one line each. SIGTERM sends the clients away and ends; a second one ends at once.
            """,
        settings: GatewayArguments.all,
        examples: [
            Example("reel serve", "on 127.0.0.1:7350, everything in ./reel-data"),
            Example("reel serve --data /var/lib/reel --listen 0.0.0.0:7350", "for other machines"),
        ]
    ) { options, console in
        let settings = try GatewayArguments.settings(options)
        let log = try LogArguments.open(options, ifAbsent: .make, console)
        defer { log.close() }
        // Its own opening of the log: when folding does not keep up, only its own tails are held back.
        let folded = try LogArguments.open(options, ifAbsent: .make, console)
        defer { folded.close() }
        let (journal, metrics) = (Journal(), Metrics())
        let snapshot = try SnapshotNode(
            log: folded,
            settings: SnapshotSettings(folder: try LogArguments.path("snapshot", inDataOf: options)),
            journal: journal,
            metrics: metrics
        )
        defer { snapshot.close() }
        let gateway = try Gateway(
            log: log,
            settings: settings,
            journal: journal,
            metrics: metrics,
            state: snapshot
        )
        try gateway.end.onSignals()
        try console.print("listening on \(gateway.address)")
        try console.flush()
        await gateway.waitUntilEnded()
        return .done
    }
}
