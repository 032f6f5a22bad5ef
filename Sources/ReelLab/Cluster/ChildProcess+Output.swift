extension ChildProcess {
    /// Runs a program to its end, and returns what it printed on both outputs; throws that where it failed, or was
    /// killed because it took more than `timeoutMs`.
    @discardableResult
    public static func output(
        of program: String,
        _ arguments: [String],
        timeoutMs: Int = 120_000
    ) throws(Failure) -> String {
        let folder = try TemporaryFolder(prefix: "reel-tool-")
        let log = folder.path + "/output"
        let process = try ChildProcess(program, arguments, outputLog: log, errorLog: log)
        let end = process.wait(timeoutMs: timeoutMs)
        let said = String(decoding: Files.bytes(of: log), as: UTF8.self)
        guard end == .exited(0) else {
            let words = ([program] + arguments).joined(separator: " ")
            throw Failure(description: "`\(words)` ended with \(end.map { "\($0)" } ?? "nothing"): \(said)")
        }
        return said
    }
}
