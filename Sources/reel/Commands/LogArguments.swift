import Glibc
import ReelKafka
import ReelLog

/// The settings that say which log is meant; every command that touches a log takes them.
enum LogArguments {
    /// A log has no more partitions than this.
    static let partitionsMax = 4096

    static let log = Setting<String?>.text(
        "log",
        "LOG",
        "sqlite:PATH or kafka:HOST:PORT,HOST:PORT; without it, log.sqlite in the data folder"
    )
    static let data = Setting<String>.text("data", "DIR", default: "reel-data", "the folder of this node's files")
    static let partitions = Setting<Int?>.number(
        "partitions",
        "N",
        1...partitionsMax,
        "how many partitions the log has; a new one gets 4, by `epoch new` as many as before"
    )

    /// The settings of a command that opens a log, or makes it.
    static let all: [any AnySetting] = [log, KafkaArguments.properties, data, partitions]

    /// What to do where there is no log yet: a node makes it, a command that only reads does not. On Kafka it is an
    /// error for both, since topics are made by `topic create`; but a node looks at their settings before it trusts
    /// them.
    enum Absence { case make, fail }

    /// Opens the current log of those that are meant.
    static func open(_ options: Options, ifAbsent absence: Absence, _ console: Console) throws -> any EventLog {
        switch try place(options) {
        case .sqlite(let path):
            switch absence {
            case .make:
                if options[log] == nil { try makeFolder(options[data]) }
            case .fail:
                guard access(path, F_OK) == 0 else {
                    throw Complaint(.unreachable, "there is no log at `\(path)`; say with --log or --data where it is")
                }
            }
            return try SQLiteLog(path: path, partitions: options[partitions])
        case .kafka(let configuration):
            return try KafkaArguments.open(
                configuration,
                partitions: options[partitions],
                checks: absence == .make,
                console
            )
        }
    }

    /// The logs that are meant, one epoch after the other.
    static func store(_ options: Options, replicas: Int? = nil, _ console: Console) throws -> any LogStore {
        switch try place(options) {
        case .sqlite(let path): SQLiteLogStore(path: path)
        case .kafka(let configuration): try KafkaArguments.store(configuration, replicas: replicas, console)
        }
    }

    /// Where logs lie.
    private enum Place {
        case sqlite(path: String)
        case kafka(KafkaConfiguration)
    }

    private static func place(_ options: Options) throws(Complaint) -> Place {
        guard let log = options[log] else { return .sqlite(path: options[data] + "/log.sqlite") }
        let words = log.split(separator: ":", maxSplits: 1)
        if words.count == 2, words[0] == "sqlite" { return .sqlite(path: String(words[1])) }
        if words.count == 2, words[0] == "kafka" {
            return .kafka(try KafkaArguments.configuration(options, brokers: words[1]))
        }
        throw Complaint(
            .usage,
            "--log is `\(log)`; expected is sqlite:PATH, such as sqlite:reel-data/log.sqlite,"
                + " or kafka:HOST:PORT, such as kafka:127.0.0.1:9092"
        )
    }

    /// The brokers that are meant, for a command that is about Kafka alone.
    static func kafka(_ options: Options) throws(Complaint) -> KafkaConfiguration {
        guard case .kafka(let configuration) = try place(options) else {
            throw Complaint(
                .usage,
                "--log is \(options[log].map { "`\($0)`" } ?? "not given"); expected is"
                    + " kafka:HOST:PORT, such as kafka:127.0.0.1:9092"
            )
        }
        return configuration
    }

    /// A path in the data folder.
    static func path(_ name: String, inDataOf options: Options) -> String { "\(options[data])/\(name)" }

    /// Makes a folder if it is not there.
    static func makeFolder(_ path: String) throws(Complaint) {
        guard mkdir(path, 0o755) == 0 || errno == EEXIST else {
            throw Complaint(.failed, "the folder `\(path)` cannot be made: \(String(cString: strerror(errno)))")
        }
        var status = stat()
        guard stat(path, &status) == 0, status.st_mode & S_IFMT == S_IFDIR else {
            throw Complaint(.failed, "`\(path)` is no folder; say with --data where this node may keep its files")
        }
    }
}
