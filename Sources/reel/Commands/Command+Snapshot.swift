import ReelLog
import ReelNode
import ReelSnapshot

extension Command {
    /// A snapshot node in this process.
    static let snapshot = Command(
        "snapshot",
        "run a snapshot node: the log, folded into SQLite",
        about: """
            Folds the whole log into one SQLite file a partition, in the folder `snapshot` of the data folder, and
            answers snapshots, deltas, objects and ranges over HTTP. Gateways find it through the log and ask it for
            what they do not have. All that it holds can be made anew from the log: kill it, start it, and it goes on
            from its files. One process has a folder.
            """,
        settings: ServingArguments.all,
        examples: [
            Example("reel snapshot --log sqlite:log.sqlite --data node-1", "beside the gateways of that log"),
            Example("reel snapshot --listen 127.0.0.1:0", "on a free port, which the first line names"),
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
