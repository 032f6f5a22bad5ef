import ReelGateway
import ReelLog
import ReelNet
import ReelNode
import ReelSnapshot

/// A node of any kind that listens.
protocol ServingNode: Sendable {
    var address: SocketAddress { get }
    var admin: AdminPort? { get }
    var end: GracefulShutdown { get }
    /// It has read the end of its log's epoch.
    var epochHasEnded: Bool { get }
    func waitUntilEnded() async
}

extension Gateway: ServingNode {}
extension SnapshotServer: ServingNode {}

/// Runs a node on the current log until it is asked to end. When another log becomes the current one, the node ends and
/// begins anew with that, at the same address.
struct NodeRun {
    /// The log of this run, and where it came from.
    let log: any EventLog
    /// It, as the store knows it: its number and deployment.
    let current: CurrentLog
    let store: any LogStore
    /// Where the node listens.
    let listen: String
    /// Where it answers its operator, if that is a port of its own.
    let adminListen: String?
    let logger: Logger
    private let storeWatch: StoreWatch

    /// What an operator must see to though the node serves; nil: nothing.
    var notice: @Sendable () -> String? { { [storeWatch] in storeWatch.notice } }

    /// A node that was started.
    struct Started {
        var node: any ServingNode
        /// Closes what the node has used, behind its end.
        var close: () -> Void = {}
    }

    /// Calls `start` for the current log, and for each that follows. `snapshots`: the folder of the node's folded
    /// state, if it has one.
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
        // Before a log is made for a node that cannot listen.
        try SocketAddress(parsing: options[ServingArguments.listen]).checkThatItIsFree()
        if let admin = settings.adminListen { try AdminPort.checkThatItIsFree(admin) }
        if snapshots != nil { try LogArguments.makeFolder(options[LogArguments.data]) }
        let store = try LogArguments.store(options, console, logger: logger)
        defer { store.close() }
        var (listen, adminListen) = (options[ServingArguments.listen], settings.adminListen)
        if try store.current() == nil { try refuseToForget(options, snapshots) }
        // On Kafka a log is made by `topic create` alone.
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
                // A gateway joins a log, mostly: its path may be mistyped.
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

    /// A log that is lost is not replaced by an empty one without a word.
    private static func refuseToForget(_ options: Options, _ snapshots: String?) throws(CommandError) {
        for folder in try (snapshots.map { [$0] } ?? []) + LogArguments.snapshotFolders(options) {
            guard let epoch = SnapshotArchive.epochs(in: folder).last else { continue }
            let found = try LogArguments.isEmptyFile(options) ? "an empty log file" : "no log"
            throw CommandError(
                .badData,
                "found \(found), but the state of the log \(epoch) in `\(folder)`: put the log back to where it was;"
                    + " or, if it is lost, go on with that state by `reel epoch new --from-snapshot`; or begin a new"
                    + " log with another --data"
            )
        }
    }

    /// Runs the node until it has ended, and says which log it is to begin anew with, if any.
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
