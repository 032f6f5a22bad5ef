extension ChildProcess {
    /// Runs a program to its end, and returns the text that it printed on both outputs.
    ///
    /// - Parameters:
    ///   - program: the path of the program.
    ///   - arguments: its arguments.
    ///   - timeoutMs: the time in milliseconds after which it is killed.
    /// - Throws: An error with the printed text if the program failed or was killed.
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
