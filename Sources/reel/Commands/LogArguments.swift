import Glibc
import ReelLog

/// The settings that say which log is meant; every command that touches a log takes them.
enum LogArguments {
    /// A log has no more partitions than this.
    static let partitionsMax = 4096

    static let log = Setting<String?>.text(
        "log",
        "sqlite:PATH",
        "the log; without it, the file log.sqlite in the data folder"
    )
    static let data = Setting<String>.text("data", "DIR", default: "reel-data", "the folder of this node's files")
    static let partitions = Setting<Int?>.number(
        "partitions",
        "N",
        1...partitionsMax,
        "how many partitions the log has; a log that is made now gets 4 if nothing is said"
    )

    /// The settings of a command that opens a log, or makes it.
    static let all: [any AnySetting] = [log, KafkaArguments.properties, data, partitions]

    /// What to do where there is no log yet.
    enum Absence { case make, fail }

    /// Opens the log that is meant.
    static func open(_ options: Options, ifAbsent absence: Absence) throws -> any EventLog {
        let path = try path(options)
        switch absence {
        case .make:
            if options[log] == nil { try makeFolder(options[data]) }
        case .fail:
            guard access(path, F_OK) == 0 else {
                throw Complaint(.unreachable, "there is no log at `\(path)`; say with --log or --data where it is")
            }
        }
        return try SQLiteLog(path: path, partitions: options[partitions])
    }

    private static func path(_ options: Options) throws(Complaint) -> String {
        guard let log = options[log] else { return options[data] + "/log.sqlite" }
        let words = log.split(separator: ":", maxSplits: 1)
        guard words.count == 2, words[0] == "sqlite" else {
            throw Complaint(
                .usage,
                "--log is `\(log)`; expected is sqlite: and a path, such as sqlite:reel-data/log.sqlite"
            )
        }
        return String(words[1])
    }

    /// A path in the data folder, which is made if it is not there.
    static func path(_ name: String, inDataOf options: Options) throws(Complaint) -> String {
        try makeFolder(options[data])
        return "\(options[data])/\(name)"
    }

    private static func makeFolder(_ path: String) throws(Complaint) {
        guard mkdir(path, 0o755) == 0 || errno == EEXIST else {
            throw Complaint(.failed, "the folder `\(path)` cannot be made: \(String(cString: strerror(errno)))")
        }
    }
}
