import Foundation
import ReelLab
import TestSupport
import Testing

@testable import ReelTool

/// Runs the built program as a user does: by its path, with arguments, and with its exit code.
enum BuiltProgram {
    /// The path of the program, which the build puts beside the tests.
    static let path: String = {
        let own = (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")) ?? "/"
        return URL(filePath: own).deletingLastPathComponent().appending(path: "reel").path
    }()

    /// The exit code and the output of a run.
    struct Run: CustomStringConvertible {
        var code: Int32
        var output: String
        var errors: String

        /// Returns true if the output contains one of these texts.
        func says(_ signs: [String]) -> Bool {
            signs.contains { output.contains($0) || errors.contains($0) }
        }

        var description: String { "exit code \(code)\n\(output.prefix(2_000))\n\(errors.prefix(2_000))" }
    }

    /// Runs the program to its end.
    ///
    /// - Parameter shell: Shell text before the program, such as `ulimit -n 20;`.
    static func run(
        _ words: [String],
        shell: String = "",
        seconds: Int = 120
    ) async throws -> Run {
        try await Shell.run(
            Shell.closingWhatIsInherited + shell + " exec \"$0\" \"$@\"",
            [path] + words,
            seconds: seconds
        )
    }
}

extension BuiltProgram {
    /// Runs `epoch new`, and repeats it, as an operator does, if another process has locked the log for too long.
    static func newEpoch(_ words: [String]) async throws -> Run {
        var run = try await Self.run(["epoch", "new"] + words)
        for _ in 0..<20 where run.code == ExitCode.unreachable.rawValue {
            run = try await Self.run(["epoch", "new"] + words)
        }
        return run
    }

    /// Runs a command that must end within ten seconds. A busy machine may delay a run, so the command is repeated
    /// until most runs were in time, for at most two minutes.
    ///
    /// - Parameter isLate: Returns true for a run that counts as delayed even if it took less time.
    static func runInTime(
        _ words: [String],
        shell: String = "",
        at location: SourceLocation = #_sourceLocation,
        isLate: (Run, Duration) -> Bool = { _, _ in false }
    ) async throws -> Run {
        let end = ContinuousClock.now + .seconds(120)
        var (inTime, late) = (0, 0)
        while true {
            let start = ContinuousClock.now
            let run = try await Self.run(words, shell: shell)
            let took = ContinuousClock.now - start
            if took >= .seconds(10) || isLate(run, took) { late += 1 } else { inTime += 1 }
            guard inTime <= late else { return run }
            guard ContinuousClock.now < end else {
                Issue.record("\(late) of \(late + inTime) runs were late, the last: \(run)", sourceLocation: location)
                return run
            }
        }
    }

    /// Runs a command that must end within ten seconds, with this exit code, and with one line of reason after its log
    /// lines. A run with another reason counts as delayed if it took longer than `patience`.
    ///
    /// - Parameters:
    ///   - hides: A text that the output must not contain.
    ///   - patience: The time for which the node or log that the command asks may be silent.
    static func complains(
        _ words: [String],
        _ code: ExitCode,
        _ says: String,
        shell: String = "",
        hides: String? = nil,
        patience: Duration = .seconds(10),
        at location: SourceLocation = #_sourceLocation
    ) async throws {
        let run = try await runInTime(words, shell: shell, at: location) { run, took in
            took >= patience && !run.errors.contains(says)
        }
        #expect(run.code == code.rawValue, "\(run)", sourceLocation: location)
        #expect(run.errors.contains(says), "\(run)", sourceLocation: location)
        // After a mistyped argument, the program prints its usage, too.
        let lines = run.errors.split(separator: "\n").filter { !$0.hasPrefix("usage: ") && !$0.hasPrefix("time=") }
        #expect(lines.count == 1, "\(run)", sourceLocation: location)
        if let hides { #expect(!(run.errors + run.output).contains(hides), sourceLocation: location) }
    }
}

/// Runs a line of shell to its end.
enum Shell {
    /// Shell text that closes inherited descriptors, for tests that count them. Files of other
    /// tests may be open in this process.
    static let closingWhatIsInherited =
        "for fd in /proc/self/fd/*; do fd=${fd##*/}; [ $fd -gt 2 ] && eval \"exec $fd>&-\"; done; "

    static func run(
        _ line: String,
        _ words: [String] = [],
        seconds: Int = 120
    ) async throws -> BuiltProgram.Run {
        let folder = try TemporaryFolder(prefix: "reel-run-")
        let (output, errors) = (folder.path + "/out", folder.path + "/err")
        let process = try ChildProcess("/bin/bash", ["-c", "exec > '\(output)'; " + line] + words, errorLog: errors)
        do {
            try await eventually("`\(words.isEmpty ? line : words.joined(separator: " "))` ends", seconds: seconds) {
                process.hasEnded()
            }
        } catch {
            let said = (try? String(contentsOfFile: output, encoding: .utf8)) ?? ""
            throw NeverCame(description: "\(error); so far it said:\n\(said.suffix(3_000))")
        }
        guard case .exited(let code) = process.end else {
            throw NeverCame(description: "an exit code: \(process.end.map { "\($0)" } ?? "none")")
        }
        return BuiltProgram.Run(
            code: code,
            output: try String(contentsOfFile: output, encoding: .utf8),
            errors: try String(contentsOfFile: errors, encoding: .utf8)
        )
    }
}

extension Shell {
    /// Returns the output of a line that must succeed.
    static func output(_ line: String, at location: SourceLocation = #_sourceLocation) async throws -> String {
        let run = try await run(line, seconds: 200)
        #expect(run.code == 0, "\(line): \(run)", sourceLocation: location)
        return run.output
    }

    /// Returns true if a foreign program is installed, which this line finds out. Prints a message if it is not.
    ///
    /// - Parameter name: The name of the program, and how to install it, such as `curl: apt-get install curl`.
    static func has(_ line: String, _ name: String) async throws -> Bool {
        if try await run(line).code == 0 { return true }
        print("NOT TESTED: found no \(name)")
        return false
    }
}
