/// How a process of `reel` ends.
enum ExitCode: Int32, CaseIterable, Sendable {
    case done = 0
    case failed
    case usage
    case unreachable
    case badData
    case unknown

    /// What a person or a script may conclude from it.
    var meaning: String {
        switch self {
        case .done: "done"
        case .failed:
            "failed: what was asked for was tried and did not succeed, such as with a file that is missing or may not "
                + "be opened; or a check came out wrong"
        case .usage: "usage: the command line or a `REEL_…` variable is not as it must be; nothing was done"
        case .unreachable: "the log or a node cannot be reached; the same may succeed later"
        case .badData:
            "data is not as it must be: a file, a log or an answer whose content is wrong, or histories that prove a "
                + "loss"
        case .unknown: "unknown: there is not enough evidence to say whether all is as it must be"
        }
    }
}

/// Why a command ends otherwise than well.
struct CommandError: Error, Equatable, Sendable {
    var code: ExitCode
    /// What was found, what was expected, what to do.
    var message: String
    /// How the command is used, as a line of its own; nil: that does not help.
    var usage: String?

    init(_ code: ExitCode, _ message: String, usage: String? = nil) {
        self.code = code
        self.message = message
        self.usage = usage
    }

    /// Nobody reads standard output any more, such as behind `| head`. That is no trouble, so nothing is said of it.
    static let brokenPipe = CommandError(.failed, "standard output cannot be written: nobody reads it any more")
}
