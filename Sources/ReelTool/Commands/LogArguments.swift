import Glibc
import ReelCore
import ReelKafka
import ReelLog
import ReelNode

/// The settings that choose the log. Every command that opens a log has them.
enum LogArguments {
    /// The largest number of partitions of a log.
    static let partitionsMax = 4096

    static let log = Setting<String?>.text(
        "log",
        "LOG",
        otherwise: "log.sqlite in the data folder",
        "log: sqlite:PATH or kafka:HOST:PORT,HOST:PORT"
    )
    static let data = Setting<String>.text("data", "DIR", default: "reel-data", "folder of this node's files")
    static let partitions = Setting<Int?>.number(
        "partitions",
        "N",
        1...partitionsMax,
        "number of partitions of the log; a new log gets 4"
    )

    /// `--data` for a command that uses only the log in this folder.
    static let logFolder = data.saying("folder with log.sqlite, used if --log is not given")

    /// The settings of a command that opens or creates a log.
    static let all: [any AnySetting] = [log, KafkaArguments.properties, data, partitions]

    /// Opens the current log for a node. A missing SQLite log is created. A missing log on Kafka is an error, since
    /// only `topic create` creates topics; but the settings of the topics are checked before use.
    static func openOrMake(_ options: Options, _ console: Console, _ logger: Logger) throws -> any EventLog {
        switch try location(options) {
        case .sqlite(let path):
            if options[log] == nil { try makeFolder(options[data]) }
            return try SQLiteLog(
                path: path,
                partitions: options[partitions],
                report: LogReports.lockWait(console, logger)
            )
        case .kafka(let configuration):
            return try KafkaArguments.open(
                configuration,
                partitions: options[partitions],
                checks: true,
                console,
                logger: logger
            )
        }
    }

    /// Opens a log for a command that creates none. `epoch`: the epoch of the log; nil for the current log.
    ///
    /// - Throws: a `CommandError` with exit code 2 if no log has that epoch.
    static func open(_ options: Options, epoch: Epoch? = nil, _ console: Console) throws -> any EventLog {
        switch try location(options) {
        case .sqlite(let path):
            return try openFile(path, epoch: epoch, console)
        case .kafka(let configuration):
            guard let epoch else {
                return try KafkaArguments.open(configuration, partitions: nil, checks: false, console)
            }
            let store = try KafkaArguments.store(configuration, console)
            defer { store.close() }
            let epochs = try store.epochs()
            // If the topic of the current log is missing, the setting is right, and `open` throws the reason.
            if !epochs.isEmpty, !epochs.contains(epoch), try KafkaArguments.current(store).epoch != epoch {
                throw noLog(of: epoch, among: epochs, "at \(configuration.brokers.joined(separator: ","))")
            }
            return try store.open(epoch)
        }
    }

    private static func noLog(of epoch: Epoch, among epochs: [Epoch], _ place: String) -> CommandError {
        let list = epochs.map(\.description).joined(separator: ", ")
        return CommandError(.usage, "--epoch is \(epoch); expected is one of those \(place): \(list)")
    }

    private static func openFile(_ path: String, epoch: Epoch?, _ console: Console) throws -> any EventLog {
        let store = SQLiteLogStore(path: path, report: LogReports.lockWait(console, nil))
        defer { store.close() }
        guard try store.exists() else {
            throw CommandError(.failed, "there is no log at `\(path)`; name its place with --log or --data")
        }
        let epochs = try store.epochs()
        if let epoch, !epochs.isEmpty, !epochs.contains(epoch) {
            throw noLog(of: epoch, among: epochs, "in `\(path)`")
        }
        guard let found = try epoch ?? store.current()?.epoch, !epochs.isEmpty else {
            throw CommandError(
                .badData,
                "found \(isEmpty(path) ? "an empty file" : "a file without a current log"), expected a log: `\(path)`;"
                    + " name its place with --log or --data, or, if it was lost, see docs/operations/epochs.md"
            )
        }
        return try store.open(found)
    }

    private static func isEmpty(_ path: String) -> Bool {
        var status = stat()
        return stat(path, &status) == 0 && status.st_size == 0
    }

    /// Returns the path of the log's file.
    ///
    /// - Throws: a `CommandError` with exit code 2 if the log is on Kafka.
    static func file(_ options: Options) throws(CommandError) -> String {
        let (log, prefix) = (name(options), "sqlite:")
        guard log.hasPrefix(prefix) else {
            throw CommandError(
                .usage,
                "--log is `\(log)`; expected is sqlite:PATH, such as sqlite:reel-data/log.sqlite: a log on Kafka has no"
                    + " file"
            )
        }
        return String(log.dropFirst(prefix.count))
    }

    /// Returns the folders that can contain folded state of a log in a file: `snapshot` in the data folder, and beside
    /// the file. Empty for a log on Kafka.
    static func snapshotFolders(_ options: Options) throws(CommandError) -> [String] {
        guard case .sqlite(let file) = try location(options) else { return [] }
        let beside = file.lastIndex(of: "/").map { "\(file[...$0])snapshot" } ?? "snapshot"
        return [path("snapshot", inDataOf: options), beside]
    }

    /// True if the log is a file that exists and is empty.
    static func isEmptyFile(_ options: Options) throws(CommandError) -> Bool {
        guard case .sqlite(let path) = try location(options) else { return false }
        return isEmpty(path)
    }

    /// True if the log is on Kafka.
    static func hasBrokers(_ options: Options) -> Bool {
        if case .kafka? = try? location(options) { true } else { false }
    }

    /// Opens the store of the log, which has one log for each epoch.
    ///
    /// - Parameters:
    ///   - options: the options of the command.
    ///   - replicas: the number of brokers for each event of a new log on Kafka; nil for the default.
    ///   - console: where the storage reports if there is no logger.
    ///   - logger: the logger of a node; nil for other commands.
    static func store(
        _ options: Options,
        replicas: Int? = nil,
        _ console: Console,
        logger: Logger? = nil
    ) throws -> any LogStore {
        switch try location(options) {
        case .sqlite(let path): SQLiteLogStore(path: path, report: LogReports.lockWait(console, logger))
        case .kafka(let configuration):
            try KafkaArguments.store(configuration, replicas: replicas, console, logger: logger)
        }
    }

    /// The location of a log.
    private enum Location {
        case sqlite(path: String)
        case kafka(KafkaConfiguration)
    }

    /// Returns the log in the form of `--log`.
    static func name(_ options: Options) -> String { options[log] ?? "sqlite:\(options[data])/log.sqlite" }

    private static func location(_ options: Options) throws(CommandError) -> Location {
        let log = name(options)
        let words = log.split(separator: ":", maxSplits: 1)
        if words.count == 2, words[0] == "sqlite" { return .sqlite(path: String(words[1])) }
        if words.count == 2, words[0] == "kafka" {
            return .kafka(try KafkaArguments.configuration(options, brokers: words[1]))
        }
        throw CommandError(
            .usage,
            "--log is `\(log)`; expected is sqlite:PATH, such as sqlite:reel-data/log.sqlite,"
                + " or kafka:HOST:PORT, such as kafka:127.0.0.1:9092"
        )
    }

    /// Returns the configuration of the Kafka client.
    ///
    /// - Throws: a `CommandError` with exit code 2 if the log is not on Kafka.
    static func kafka(_ options: Options) throws(CommandError) -> KafkaConfiguration {
        guard case .kafka(let configuration) = try location(options) else {
            throw CommandError(
                .usage,
                "--log is \(options[log].map { "`\($0)`" } ?? "not given"); expected is"
                    + " kafka:HOST:PORT, such as kafka:127.0.0.1:9092"
            )
        }
        return configuration
    }

    /// Returns the path of `name` in the data folder.
    static func path(_ name: String, inDataOf options: Options) -> String { "\(options[data])/\(name)" }

    /// Creates a folder if it does not exist, with rights for this user only: its files contain events, and with the
    /// usual umask other users could read them.
    static func makeFolder(_ path: String) throws(CommandError) {
        guard mkdir(path, 0o700) == 0 || errno == EEXIST else {
            let advice = errno == ENOENT ? "; create its parent folder first" : ""
            let reason = String(cString: strerror(errno))
            throw CommandError(.failed, "the folder `\(path)` cannot be created: \(reason)\(advice)")
        }
        var status = stat()
        guard stat(path, &status) == 0, status.st_mode & S_IFMT == S_IFDIR else {
            throw CommandError(.failed, "`\(path)` is not a folder; name a folder for this node's files with --data")
        }
    }
}
