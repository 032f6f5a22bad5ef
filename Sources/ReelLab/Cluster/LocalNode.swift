import Glibc

/// A node of ours that runs as a process on this machine.
public final class LocalNode {
    /// What we call it: `gateway-a`.
    public let name: String
    /// Where it listens: `http://127.0.0.1:PORT`.
    public let url: String
    /// Its process.
    public let process: ChildProcess

    /// Starts `reel` with these arguments (a role first) on a free port of the loopback, and waits until it says where
    /// it listens. What it logs goes to `FOLDER/NAME.log`.
    public init(
        name: String,
        reel: String,
        arguments: [String],
        folder: String,
        timeoutMs: Int = 10_000
    ) throws(ChildProcess.Failure) {
        let log = "\(folder)/\(name).log"
        process = try ChildProcess(reel, arguments + ["--listen", "127.0.0.1:0"], errorLog: log)
        let prefix = "listening on "
        guard let line = try process.readLine(timeoutMs: timeoutMs), line.hasPrefix(prefix) else {
            process.wait(timeoutMs: 1_000)
            throw ChildProcess.Failure(
                description: "\(name) ended before it listened (\(process.end.map { "\($0)" } ?? "still running"));"
                    + " its log is \(log)"
            )
        }
        self.name = name
        url = "http://" + line.dropFirst(prefix.count)
    }
}
