import ReelGateway
import ReelLog
import ReelNode
import ReelSnapshot

extension Command {
    /// `reel serve`: a gateway and a snapshot node in this process.
    static let serve = Command(
        "serve",
        "run a gateway and a snapshot node in one process",
        about: """
            Everything for one machine: the log, a gateway, and a snapshot node with the folded state, on one port. The
            first line on standard output is `listening on HOST:PORT`; log lines go to standard error. SIGTERM starts a
            drain: the clients are told to leave, then the node ends. A second SIGTERM ends it at once. A payer is the
            subject of a client's token, or without keys the client's address.
            """,
        settings: GatewayArguments.all,
        examples: [
            Example("reel serve", "on 127.0.0.1:7350, everything in ./reel-data"),
            Example("reel serve --listen 0.0.0.0:7350 --jwks public.json", "for other machines"),
        ]
    ) { options, console in
        var settings = try GatewayArguments.settings(options)
        settings.node.watchedFolders["data"] = options[LogArguments.data]
        let folder = LogArguments.path("snapshot", inDataOf: options)
        return try await NodeRun.run(options, settings.node, snapshots: folder, console) { run in
            (settings.node.listen, settings.node.adminListen) = (run.listen, run.adminListen)
            // The snapshot node opens the log separately: if its fold is slow, only its own tails wait.
            let folded = try run.store.open(run.log.epoch)
            let metrics = Metrics(of: run.log, folded)
            var snapshot: SnapshotNode?
            func close() {
                snapshot?.close()
                folded.close()
            }
            do {
                let state = try SnapshotNode(
                    log: folded,
                    number: run.current.number,
                    deployment: run.current.deployment,
                    settings: SnapshotSettings(folder: folder),
                    logger: run.logger,
                    metrics: metrics
                )
                snapshot = state
                state.waitUntilCompared(ms: 10_000)
                let gateway = try Gateway(
                    log: run.log,
                    number: run.current.number,
                    deployment: run.current.deployment,
                    settings: settings,
                    logger: run.logger,
                    metrics: metrics,
                    state: state,
                    notice: run.notice
                )
                return NodeRun.Started(node: gateway, close: close)
            } catch {
                close()
                throw error
            }
        }
    }
}
