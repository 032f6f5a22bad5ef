/// The exit code of a process of `reel`.
enum ExitCode: Int32, CaseIterable, Sendable {
    case done = 0
    case failed
    case usage
    case unreachable
    case badData
    case unknown

    /// The meaning of the code, for the page docs/reference/cli.md.
    var meaning: String {
        switch self {
        case .done: "done"
        case .failed:
            "failed: the command was executed and did not succeed, for example because a file is missing or cannot be "
                + "opened; or a check failed"
        case .usage: "usage: the command line or a `REEL_…` variable is wrong; nothing was done"
        case .unreachable: "unreachable: the log or a node does not answer; the same command can succeed later"
        case .badData: "bad data: the content of a file, a log or an answer is wrong, or histories prove a loss"
        case .unknown: "unknown: there is not enough evidence for a verdict"
        }
    }
}

/// An error that ends a command.
struct CommandError: Error, Equatable, Sendable {
    var code: ExitCode
    /// The error message: what was found, what was expected, what to do.
    var message: String
    /// The usage of the command, printed on a separate line; nil if it does not help.
    var usage: String?

    init(_ code: ExitCode, _ message: String, usage: String? = nil) {
        self.code = code
        self.message = message
        self.usage = usage
    }

    /// The reader of standard output has ended, such as `| head`. That is normal, so the program prints no message.
    static let brokenPipe = CommandError(.failed, "standard output cannot be written: its reader has ended")
}
