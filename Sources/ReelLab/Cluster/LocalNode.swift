import Glibc

/// A node of ours that runs as a process on this machine.
public final class LocalNode {
    /// What we call it: `gateway-a`.
    public let name: String
    /// Where it listens: `http://127.0.0.1:PORT`.
    public let url: String
    /// What it logs.
    public let log: String
    /// Its process.
    public private(set) var process: ChildProcess
    private let reel: String
    private let arguments: [String]

    /// Starts `reel` with these arguments (a role first) on a free port of the loopback, and waits until it says where
    /// it listens. What it logs goes to `FOLDER/NAME.log`.
    public init(
        name: String,
        reel: String,
        arguments: [String],
        folder: String,
        timeoutMs: Int = 60_000
    ) throws(ChildProcess.Failure) {
        (self.name, self.reel, self.arguments) = (name, reel, arguments)
        log = "\(folder)/\(name).log"
        let address: String
        (process, address) = try Self.start(name, reel, arguments, "127.0.0.1:0", log: log, timeoutMs)
        url = "http://" + address
    }

    /// Starts it again where it was; killed first if it still runs.
    public func restart(timeoutMs: Int = 60_000) throws(ChildProcess.Failure) {
        process.killNow()
        let address = String(url.dropFirst("http://".count))
        (process, _) = try Self.start(name, reel, arguments, address, log: log, timeoutMs)
    }

    private static func start(
        _ name: String,
        _ reel: String,
        _ arguments: [String],
        _ address: String,
        log: String,
        _ timeoutMs: Int
    ) throws(ChildProcess.Failure) -> (ChildProcess, String) {
        let process = try ChildProcess(reel, arguments + ["--listen", address], errorLog: log)
        let prefix = "listening on "
        guard let line = try process.readLine(timeoutMs: timeoutMs), line.hasPrefix(prefix) else {
            process.wait(timeoutMs: 1_000)
            throw ChildProcess.Failure(
                description: "\(name) ended before it listened (\(process.end.map { "\($0)" } ?? "still running"));"
                    + " its log is \(log)"
            )
        }
        return (process, String(line.dropFirst(prefix.count)))
    }
}
