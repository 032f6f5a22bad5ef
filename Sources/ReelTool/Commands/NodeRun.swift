import ReelGateway
import ReelLog
import ReelNet
import ReelNode
import ReelSnapshot

/// A running node of any kind.
protocol ServingNode: Sendable {
    var address: SocketAddress { get }
    var admin: AdminPort? { get }
    var end: GracefulShutdown { get }
    /// True if the node has read the end of its log's epoch.
    var epochHasEnded: Bool { get }
    func waitUntilEnded() async
}

extension Gateway: ServingNode {}
extension SnapshotServer: ServingNode {}

/// Runs a node on the current log until a signal asks it to end. When another log becomes the current one, the node
/// ends, and a new one starts on that log at the same address.
struct NodeRun {
    /// The log of this run.
    let log: any EventLog
    /// The entry of the log in the store: its number and deployment.
    let current: CurrentLog
    let store: any LogStore
    /// The address on which the node listens.
    let listen: String
    /// The address of the operator's port; nil if there is none.
    let adminListen: String?
    let logger: Logger
    private let storeWatch: StoreWatch

    /// Returns the problem that an operator must solve although the node serves; nil if there is none.
    var notice: @Sendable () -> String? { { [storeWatch] in storeWatch.notice } }

    /// A node that was started.
    struct Started {
        var node: any ServingNode
        /// Closes the resources of the node after its end.
        var close: () -> Void = {}
    }

    /// Calls `start` for the current log, and for each log that follows, until a signal asks the node to end.
    ///
    /// - Parameters:
    ///   - options: the options of the command.
    ///   - settings: the settings of the node.
    ///   - snapshots: the folder of the node's folded state; nil for a gateway.
    ///   - console: the output of the line `listening on …`.
    ///   - start: starts the node of one run.
    static func run(
        _ options: Options,
        _ settings: NodeSettings,
        snapshots: String? = nil,
        _ console: Console,
        _ start: (NodeRun) throws -> Started
    ) async throws -> ExitCode {
        let logger = Logger(
            threshold: options[ServingArguments.logLevel],
            format: options[ServingArguments.logFormat]
        )
        settings.tokens?.warnOfSecrets(logger)
        // First, so that no log is created for a node that cannot listen.
        try SocketAddress(parsing: options[ServingArguments.listen]).checkThatItIsFree()
        if let admin = settings.adminListen { try AdminPort.checkThatItIsFree(admin) }
        if snapshots != nil { try LogArguments.makeFolder(options[LogArguments.data]) }
        let store = try LogArguments.store(options, console, logger: logger)
        defer { store.close() }
        var (listen, adminListen) = (options[ServingArguments.listen], settings.adminListen)
        if try store.current() == nil { try refuseToForget(options, snapshots) }
        // On Kafka, only `topic create` creates a log.
        let isNew = try store is SQLiteLogStore && store.current() == nil
        let wasEmpty = try isNew && LogArguments.isEmptyFile(options)
        var log = try LogArguments.openOrMake(options, console, logger)
        // Between the two calls another log may have become the current one.
        guard var current = try store.current() else { throw CommandError(.unreachable, "the log is gone again") }
        if current.epoch != log.epoch {
            log.close()
            log = try store.open(current.epoch)
        }
        if isNew {
            let fields: KeyValuePairs = [
                "log": LogArguments.name(options), "epoch": "\(log.epoch)", "partitions": "\(log.partitions)",
            ]
            if wasEmpty {
                logger.warning("a new log was made in a file that was empty", fields)
            } else if snapshots == nil {
                // Most gateways join an existing log: the path may be wrong.
                logger.warning("a new log was made", fields)
            } else {
                logger.info("a new log was made", fields)
            }
        }
        let signals = try NodeSignals(settings, logger: logger)
        var isFirst = true
        while true {
            let run = NodeRun(
                log: log,
                current: current,
                store: store,
                listen: listen,
                adminListen: adminListen,
                logger: logger,
                storeWatch: StoreWatch(store, logger: logger)
            )
            let next = try await run.once(signals) { run in
                let started = try start(run)
                if isFirst {
                    try console.print("listening on \(started.node.address)")
                    try console.flush()
                }
                (isFirst, listen) = (false, "\(started.node.address)")
                adminListen = started.node.admin.map { "\($0.address)" }
                return started
            }
            guard let next, !signals.isEndRequested else { return .done }
            current = next
            log = try store.open(current.epoch)
        }
    }

    /// Refuses to replace a lost log by an empty one.
    ///
    /// - Throws: a `CommandError` with exit code 4 if there is no log, but a folder with folded state of one.
    private static func refuseToForget(_ options: Options, _ snapshots: String?) throws(CommandError) {
        for folder in try (snapshots.map { [$0] } ?? []) + LogArguments.snapshotFolders(options) {
            guard let epoch = SnapshotArchive.epochs(in: folder).last else { continue }
            let found = try LogArguments.isEmptyFile(options) ? "an empty log file" : "no log"
            throw CommandError(
                .badData,
                "found \(found), but the state of the log \(epoch) in `\(folder)`: put the log back in its place;"
                    + " or, if it is lost, continue with that state by `reel epoch new --from-snapshot`; or start a"
                    + " new log with another --data"
            )
        }
    }

    /// Runs the node until it has ended. Returns the log for the next node; nil if none follows.
    private func once(
        _ signals: NodeSignals,
        _ start: (NodeRun) throws -> Started
    ) async throws -> CurrentLog? {
        defer { log.close() }
        let started = try start(self)
        defer { started.close() }
        let node = started.node
        signals.meet(node.end)
        defer { signals.meet(nil) }
        storeWatch.start(until: node.end)
        NoticeWatch(log, end: node.end, logger: logger) { node.epochHasEnded }.start()
        let watch = EpochWatch(store, current: current, end: node.end, logger: logger) { node.epochHasEnded }
        await node.waitUntilEnded()
        return watch.next
    }
}
