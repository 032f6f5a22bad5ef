import Foundation
import ReelLab
import TestSupport
import Testing

@testable import reel

/// The program as it was built, run as a stranger runs it: by its name, with words, and with its exit code.
enum BuiltProgram {
    /// Where it lies: beside the tests.
    static let path: String = {
        let own = (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")) ?? "/"
        return URL(filePath: own).deletingLastPathComponent().appending(path: "reel").path
    }()

    /// How a run ended, and what it said.
    struct Run: CustomStringConvertible {
        var code: Int32
        var output: String
        var errors: String

        /// Whether it has said any of these.
        func says(_ signs: [String]) -> Bool {
            signs.contains { output.contains($0) || errors.contains($0) }
        }

        var description: String { "exit code \(code)\n\(output.prefix(2_000))\n\(errors.prefix(2_000))" }
    }

    /// Runs it to its end. `shell` stands in front of it, such as `ulimit -n 20;`.
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
    /// Runs `epoch new`, as an operator does: again where another process held the log for so long that it was away.
    static func newEpoch(_ words: [String]) async throws -> Run {
        var run = try await Self.run(["epoch", "new"] + words)
        for _ in 0..<20 where run.code == ExitCode.unreachable.rawValue {
            run = try await Self.run(["epoch", "new"] + words)
        }
        return run
    }

    /// Runs what must end within ten seconds. A busy machine may hold a run up: it is run again until most of the runs
    /// were in time, for two minutes at most. `isLate`: whether one that took less counts as held up all the same.
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

    /// Runs what must end within ten seconds, with this exit code and one line that says why, behind the lines of its
    /// journal. `hides`: no word of it.
    /// Held up is also a run that says something else after `patience`, so long as what it asks may be silent.
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
        // Who mistyped is shown the usage too.
        let lines = run.errors.split(separator: "\n").filter { !$0.hasPrefix("usage: ") && !$0.hasPrefix("time=") }
        #expect(lines.count == 1, "\(run)", sourceLocation: location)
        if let hides { #expect(!(run.errors + run.output).contains(hides), sourceLocation: location) }
    }
}

/// A line for the shell, run to its end.
enum Shell {
    /// What stands in front where descriptors are counted: other tests' files may be open in this process.
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
    /// What a line prints that must end well.
    static func output(_ line: String, at location: SourceLocation = #_sourceLocation) async throws -> String {
        let run = try await run(line, seconds: 200)
        #expect(run.code == 0, "\(line): \(run)", sourceLocation: location)
        return run.output
    }

    /// Whether a program is installed that others have written, as this line finds out; says so where it is not.
    static func has(_ line: String, _ name: String) async throws -> Bool {
        if try await run(line).code == 0 { return true }
        print("NOT TESTED: \(name) is not installed")
        return false
    }
}
