import Glibc
import ReelCore
import ReelLab
import ReelLog
import ReelNet
import ReelSnapshot

/// The program: runs a command line and returns its exit code.
enum CommandLineTool {
    /// Runs the command line and environment of this process.
    static func run() async -> ExitCode {
        await run(Array(CommandLine.arguments.dropFirst()), environment: environment(), console: .process)
    }

    /// Runs the command that `words` name. An error becomes a line on standard error and an exit code.
    ///
    /// - Parameters:
    ///   - words: the command line without the name of the program.
    ///   - environment: the variables of the environment, by name.
    static func run(_ words: [String], environment: [String: String], console: Console) async -> ExitCode {
        let parser = ArgumentParser(commands: CommandTable.all, environment: environment)
        do {
            let code: ExitCode
            switch try parser.request(words) {
            case .overview(let commands):
                try console.print(page: HelpPages(commands: commands).overview())
                code = words.isEmpty ? .usage : .done
            case .help(let command):
                try console.print(page: HelpPages(commands: CommandTable.all).page(of: command))
                code = .done
            case .run(let command, let options):
                for warning in parser.warnings() { console.note("reel: warning: \(warning)") }
                code = try await command.run(options, console)
            }
            try console.flush()
            return code
        } catch {
            try? console.flush()
            let complaint = CommandError(error)
            if complaint != .brokenPipe {
                console.note("reel: \(complaint.message)")
                if let usage = complaint.usage { console.note(usage) }
            }
            return complaint.code
        }
    }
}

extension CommandError {
    /// Converts an error of any module, and chooses the exit code that fits it.
    init(_ error: any Error) {
        switch error {
        case let error as CommandError: self = error
        case let error as NoAnswer: self = error.complaint
        case let refusal as Refusal: self = refusal.complaint
        case let error as ReelError:
            self.init(ExitCode(error.code), error.description + (error.code == .unauthorized ? Self.tokenAdvice : ""))
        case let error as LogError where error.code == .badRequest: self.init(.usage, error.message)
        case let error as LogError:
            let code = error.isLasting ? ExitCode.failed : ExitCode(error.code)
            self.init(code, "\(error.message) (\(error.code.rawValue))")
        case let error as SnapshotError: self.init(ExitCode(error.code), error.message)
        case let error as NetError where error.code == .addressInUse:
            self.init(.failed, "\(error.message); choose another address with --listen")
        case let error as NetError where error.code == .permissionDenied:
            self.init(
                .failed,
                "\(error.message); ports below 1024 need root or CAP_NET_BIND_SERVICE: choose another with --listen"
            )
        case let error as NetError: self.init(error.code == .badAddress ? .usage : .failed, error.message)
        case let error as LoadFailure:
            self.init(ExitCode(error.code), error.message + (error.code == .unauthorized ? Self.tokenAdvice : ""))
        case let error as ChildProcess.Failure: self.init(.failed, error.description)
        default: self.init(.failed, "\(error)")
        }
    }

    /// The advice for a token that is missing or that the node refuses.
    private static let tokenAdvice = "; give a valid token with --token or REEL_TOKEN"
}

extension ExitCode {
    /// The exit code of a load run that ended without a report.
    init(_ code: LoadFailure.Code) {
        switch code {
        case .plan: self = .usage
        case .unreachable: self = .unreachable
        case .descriptors, .history, .unauthorized: self = .failed
        }
    }

    /// The exit code for an error code of the protocol.
    init(_ code: ErrorCode) {
        switch code {
        case .logUnavailable, .nodeBehind, .overloaded: self = .unreachable
        case .badJSON, .badFrame, .badEvent, .badNumber, .tooLarge, .epochChanged, .truncated, .aheadOfLog, .diverged,
            .damaged:
            self = .badData
        default: self = .failed
        }
    }
}

private func environment() -> [String: String] {
    var variables: [String: String] = [:]
    var next = environ
    while let entry = next.pointee {
        let words = String(cString: entry).split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
        if words.count == 2 { variables[String(words[0])] = String(words[1]) }
        next += 1
    }
    return variables
}
