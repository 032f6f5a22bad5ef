import Glibc
import ReelCore
import ReelKafka
import ReelLog
import ReelNode

/// The settings that say which log is meant; every command that touches a log takes them.
enum LogArguments {
    /// A log has no more partitions than this.
    static let partitionsMax = 4096

    static let log = Setting<String?>.text(
        "log",
        "LOG",
        otherwise: "log.sqlite in the data folder",
        "sqlite:PATH or kafka:HOST:PORT,HOST:PORT"
    )
    static let data = Setting<String>.text("data", "DIR", default: "reel-data", "the folder of this node's files")
    static let partitions = Setting<Int?>.number(
        "partitions",
        "N",
        1...partitionsMax,
        "how many partitions the log has; a new one gets 4"
    )

    /// `--data` of a command that takes nothing from it but the log.
    static let logFolder = data.saying("the folder that log.sqlite lies in, where --log names no other log")

    /// The settings of a command that opens a log, or makes it.
    static let all: [any AnySetting] = [log, KafkaArguments.properties, data, partitions]

    /// Opens the current log of those that are meant, for a node: where there is none yet it is made. On Kafka that is
    /// an error, since topics are made by `topic create`; but a node looks at their settings before it trusts them.
    static func openOrMake(_ options: Options, _ console: Console, _ logger: Logger) throws -> any EventLog {
        switch try place(options) {
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

    /// Opens a log of those that are meant, for a command that only reads, and so makes none: that of an epoch; nil:
    /// the current one.
    static func open(_ options: Options, epoch: Epoch? = nil, _ console: Console) throws -> any EventLog {
        switch try place(options) {
        case .sqlite(let path):
            return try openFile(path, epoch: epoch, console)
        case .kafka(let configuration):
            guard let epoch else {
                return try KafkaArguments.open(configuration, partitions: nil, checks: false, console)
            }
            let store = try KafkaArguments.store(configuration, console)
            defer { store.close() }
            let epochs = try store.epochs()
            // Where the topic of the current log is gone, that is not the caller's mistake.
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
            throw CommandError(.failed, "there is no log at `\(path)`; say with --log or --data where it is")
        }
        let epochs = try store.epochs()
        if let epoch, !epochs.isEmpty, !epochs.contains(epoch) {
            throw noLog(of: epoch, among: epochs, "in `\(path)`")
        }
        guard let found = try epoch ?? store.current()?.epoch, !epochs.isEmpty else {
            throw CommandError(
                .badData,
                "found \(isEmpty(path) ? "an empty file" : "a file without a current log"), expected a log: `\(path)`;"
                    + " say with --log or --data where it is, or, if it was lost, see docs/operations/epochs.md"
            )
        }
        return try store.open(found)
    }

    private static func isEmpty(_ path: String) -> Bool {
        var status = stat()
        return stat(path, &status) == 0 && status.st_size == 0
    }

    /// The path of the file that is meant, for a command that is about files alone.
    static func file(_ options: Options) throws(CommandError) -> String {
        let (log, prefix) = (name(options), "sqlite:")
        guard log.hasPrefix(prefix) else {
            throw CommandError(
                .usage,
                "--log is `\(log)`; expected is sqlite:PATH, such as sqlite:reel-data/log.sqlite: a log on Kafka has no"
                    + " file that could be copied"
            )
        }
        return String(log.dropFirst(prefix.count))
    }

    /// Where folded state of a log in a file may lie besides a node's own folder: in the data folder, beside the file.
    static func snapshotFolders(_ options: Options) throws(CommandError) -> [String] {
        guard case .sqlite(let file) = try place(options) else { return [] }
        let beside = file.lastIndex(of: "/").map { "\(file[...$0])snapshot" } ?? "snapshot"
        return [path("snapshot", inDataOf: options), beside]
    }

    /// Whether there is an empty file where the log is meant to be.
    static func isEmptyFile(_ options: Options) throws(CommandError) -> Bool {
        guard case .sqlite(let path) = try place(options) else { return false }
        return isEmpty(path)
    }

    /// Whether brokers keep the log that is meant.
    static func hasBrokers(_ options: Options) -> Bool {
        if case .kafka? = try? place(options) { true } else { false }
    }

    /// The logs that are meant, one epoch after the other. `logger`: the node's, for a node.
    static func store(
        _ options: Options,
        replicas: Int? = nil,
        _ console: Console,
        logger: Logger? = nil
    ) throws -> any LogStore {
        switch try place(options) {
        case .sqlite(let path): SQLiteLogStore(path: path, report: LogReports.lockWait(console, logger))
        case .kafka(let configuration):
            try KafkaArguments.store(configuration, replicas: replicas, console, logger: logger)
        }
    }

    /// Where logs lie.
    private enum Place {
        case sqlite(path: String)
        case kafka(KafkaConfiguration)
    }

    /// The log that is meant, as `--log` names it.
    static func name(_ options: Options) -> String { options[log] ?? "sqlite:\(options[data])/log.sqlite" }

    private static func place(_ options: Options) throws(CommandError) -> Place {
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

    /// The brokers that are meant, for a command that is about Kafka alone.
    static func kafka(_ options: Options) throws(CommandError) -> KafkaConfiguration {
        guard case .kafka(let configuration) = try place(options) else {
            throw CommandError(
                .usage,
                "--log is \(options[log].map { "`\($0)`" } ?? "not given"); expected is"
                    + " kafka:HOST:PORT, such as kafka:127.0.0.1:9092"
            )
        }
        return configuration
    }

    /// A path in the data folder.
    static func path(_ name: String, inDataOf options: Options) -> String { "\(options[data])/\(name)" }

    /// Makes a folder if it is not there, for this user alone: the files in it hold events, and by the usual umask
    /// others could read them.
    static func makeFolder(_ path: String) throws(CommandError) {
        guard mkdir(path, 0o700) == 0 || errno == EEXIST else {
            let advice = errno == ENOENT ? "; make the folder first in which it is to lie" : ""
            let reason = String(cString: strerror(errno))
            throw CommandError(.failed, "the folder `\(path)` cannot be made: \(reason)\(advice)")
        }
        var status = stat()
        guard stat(path, &status) == 0, status.st_mode & S_IFMT == S_IFDIR else {
            throw CommandError(.failed, "`\(path)` is no folder; say with --data where this node may keep its files")
        }
    }
}
