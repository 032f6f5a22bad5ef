import Glibc

/// A node of ours that runs as a process on this machine.
public final class LocalNode {
    /// What we call it: `gateway-a`.
    public let name: String
    /// Where it listens, on the loopback.
    let port: UInt16
    /// What it logs.
    public let log: String
    /// Its process.
    public private(set) var process: ChildProcess
    private let reel: String
    private let arguments: [String]
    private var launchedMs: Int64 = 0
    private static let prefix = "listening on "

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
        process = try ChildProcess(reel, arguments + ["--listen", "127.0.0.1:0"], errorLog: log)
        guard let line = try process.readLine(timeoutMs: timeoutMs), line.hasPrefix(Self.prefix),
            let port = UInt16(line.split(separator: ":").last ?? "")
        else {
            process.wait(timeoutMs: 1_000)
            throw Self.endedEarly(name, process, log)
        }
        self.port = port
    }

    /// Where it listens: `http://127.0.0.1:PORT`.
    public var url: String { "http://127.0.0.1:\(port)" }

    /// Starts it again where it was, killed first if it still runs, and waits until it listens.
    public func restart(timeoutMs: Int = 60_000) throws(ChildProcess.Failure) {
        let deadline = Clock.nowMs() + Int64(timeoutMs)
        try launch()
        // Somebody's connection may have got its port meanwhile, and have it for a moment.
        while try process.readLine(timeoutMs: timeoutMs) == nil {
            process.wait(timeoutMs: 1_000)
            guard Clock.nowMs() < deadline else { throw Self.endedEarly(name, process, log) }
            usleep(500_000)
            try launch()
        }
    }

    /// Starts it again where it was, killed first if it still runs, and waits for nothing.
    func launch() throws(ChildProcess.Failure) {
        process.killNow()
        process = try ChildProcess(reel, arguments + ["--listen", "127.0.0.1:\(port)"], errorLog: log)
        launchedMs = Clock.nowMs()
    }

    /// Whether it has said that it listens since it was launched; one that ended instead is launched again, a second
    /// later.
    func hasComeBack() throws(ChildProcess.Failure) -> Bool {
        if process.hasEnded(), Clock.nowMs() - launchedMs > 1_000 { try launch() }
        return (try? process.readLine(timeoutMs: 1))?.hasPrefix(Self.prefix) ?? false
    }

    private static func endedEarly(_ name: String, _ process: ChildProcess, _ log: String) -> ChildProcess.Failure {
        ChildProcess.Failure(
            description: "\(name) ended before it listened (\(process.end.map { "\($0)" } ?? "still running"));"
                + " its log is \(log)"
        )
    }
}
