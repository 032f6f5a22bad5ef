import ReelLog
import ReelNode
import ReelSnapshot

extension Command {
    /// `reel snapshot`: a snapshot node in this process.
    static let snapshot = Command(
        "snapshot",
        "run a snapshot node, which folds the log into SQLite files",
        about: """
            Folds the whole log into one SQLite file for each partition, in the folder `snapshot` of the data folder. It
            answers requests for snapshots, deltas, objects and ranges over HTTP. Gateways find it through the log and
            ask it for the folded state. Its files can be rebuilt from the log. After a restart it continues from its
            files. Each process needs a separate data folder.
            """,
        settings: ServingArguments.all,
        examples: [
            Example("reel snapshot --log sqlite:log.sqlite --data node-1", "on the same log as the gateways"),
            Example("reel snapshot --listen 127.0.0.1:0", "on a free port; the first line of output shows it"),
        ]
    ) { options, console in
        var node = try ServingArguments.nodeSettings(options)
        node.watchedFolders["data"] = options[LogArguments.data]
        let folder = LogArguments.path("snapshot", inDataOf: options)
        return try await NodeRun.run(options, node, snapshots: folder, console) { run in
            (node.listen, node.adminListen) = (run.listen, run.adminListen)
            return NodeRun.Started(
                node: try SnapshotServer(
                    log: run.log,
                    number: run.current.number,
                    deployment: run.current.deployment,
                    settings: SnapshotSettings(folder: folder),
                    common: node,
                    logger: run.logger,
                    metrics: Metrics(of: run.log),
                    notice: run.notice
                )
            )
        }
    }
}
