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
}
