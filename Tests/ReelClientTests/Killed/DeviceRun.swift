import Foundation
import ReelCore
import TestSupport

/// A run of the process `device-writer`.
struct DeviceRun: Sendable {
    /// The fault of a run, and the number of calls before it.
    struct Fault: CustomStringConvertible {
        var kind: String
        var call: Int

        var description: String { "\(kind) at call \(call)" }
    }

    /// The time in seconds after which a run counts as failed.
    private static let secondsMax = 100

    /// All lines that the process has printed, as words.
    private var lines: [[Substring]]
    /// True if the process was killed. Later runs do not count.
    let isKilled: Bool

    /// Returns the rest of each line that begins with this word.
    func all(_ word: String) -> [String] {
        lines.filter { $0.first == word[...] }.map { $0.dropFirst().joined(separator: " ") }
    }

    /// True if the process has printed a line that begins with this word.
    func has(_ word: String) -> Bool { !all(word).isEmpty }

    /// Returns the largest number in the lines that begin with this word; nil if there is none.
    func largest(_ word: String) -> Int? { all(word).compactMap { Int($0) }.max() }

    /// Adds what a later run of the same work has printed.
    mutating func add(_ next: DeviceRun) {
        lines += next.lines
    }

    /// The records that the node of the process has appended.
    var records: [FoldedLog.Record] {
        all("log").compactMap { line in
            let sides = line.split(separator: " ", maxSplits: 1)
            guard sides.count == 2, let stream = StreamName(String(sides[0])) else { return nil }
            return FoldedLog.Record(stream: stream, value: Array(sides[1].utf8))
        }
    }

    /// Runs the process to its end.
    ///
    /// - Parameters:
    ///   - work: the name of the work.
    ///   - store: the path of the store.
    ///   - script: the path of the folder with the node's answers, and the last seq of the node's log before the work.
    ///   - fault: the fault; nil: the run is not disturbed.
    /// - Returns: What the process has printed, and its end.
    static func run(
        _ work: String,
        store: String,
        script: (folder: String, head: Seq),
        fault: Fault? = nil
    ) async throws -> DeviceRun {
        let program = URL(fileURLWithPath: CommandLine.arguments[0]).deletingLastPathComponent()
            .appendingPathComponent("device-writer")
        let arguments = [work, store, script.folder, "\(script.head)"] + (fault.map { [$0.kind, "\($0.call)"] } ?? [])
        // A thread waits for the process, because a task that blocks delays the tasks of other tests.
        return try await withCheckedThrowingContinuation { continuation in
            Thread.detachNewThread { continuation.resume(with: Result { try run(program, arguments) }) }
        }
    }

    private static func run(_ program: URL, _ arguments: [String]) throws -> DeviceRun {
        let (process, output) = (Process(), Pipe())
        (process.executableURL, process.arguments, process.standardOutput) = (program, arguments, output)
        try process.run()
        let deadline = DispatchSource.makeTimerSource()
        deadline.setEventHandler { process.terminate() }
        deadline.schedule(deadline: .now() + .seconds(secondsMax))
        deadline.activate()
        defer { deadline.cancel() }
        let said = String(decoding: try output.fileHandleForReading.readToEnd() ?? Data(), as: UTF8.self)
        process.waitUntilExit()
        let isKilled = process.terminationReason == .uncaughtSignal
        guard !isKilled || process.terminationStatus == SIGKILL else {
            throw NeverCame(description: "\(arguments) ended with the signal \(process.terminationStatus): \(said)")
        }
        return DeviceRun(lines: said.split(separator: "\n").map { $0.split(separator: " ") }, isKilled: isKilled)
    }
}
