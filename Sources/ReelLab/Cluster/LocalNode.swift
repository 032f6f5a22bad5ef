import Glibc
import ReelBase

/// A node of Reel that runs as a process on this machine.
public final class LocalNode {
    /// The name of the node, such as `gateway-a`.
    public let name: String
    /// The port of the loopback on which the node listens.
    let port: UInt16
    /// The path of its log file.
    public let log: String
    /// Its process.
    public private(set) var process: ChildProcess
    private let reel: String
    private let arguments: [String]
    private var launchedMs: Int64 = 0
    private static let prefix = "listening on "

    /// Starts `reel` on a free port of the loopback, and waits until it prints its address. Its log lines go to
    /// `FOLDER/NAME.log`.
    ///
    /// - Parameters:
    ///   - name: the name of the node.
    ///   - reel: the path of the program `reel`.
    ///   - arguments: the arguments, beginning with a role.
    ///   - folder: the folder of the log file.
    ///   - timeoutMs: the maximum time in milliseconds until the node listens.
    /// - Throws: An error if the program cannot be started, ends, or does not listen in time.
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

    /// The node's address: `http://127.0.0.1:PORT`.
    public var url: String { "http://127.0.0.1:\(port)" }

    /// Restarts the node on the same port, and waits until it listens. A running process is killed first.
    public func restart(timeoutMs: Int = 60_000) throws(ChildProcess.Failure) {
        let deadline = MonotonicClock.nowMs() + Int64(timeoutMs)
        try launch()
        // Another connection may have got its port meanwhile, and keep it for a moment.
        while try process.readLine(timeoutMs: timeoutMs) == nil {
            process.wait(timeoutMs: 1_000)
            guard MonotonicClock.nowMs() < deadline else { throw Self.endedEarly(name, process, log) }
            usleep(500_000)
            try launch()
        }
    }

    /// Restarts the node on the same port, and does not wait. A running process is killed first.
    func launch() throws(ChildProcess.Failure) {
        process.killNow()
        process = try ChildProcess(reel, arguments + ["--listen", "127.0.0.1:\(port)"], errorLog: log)
        launchedMs = MonotonicClock.nowMs()
    }

    /// Returns true if the node has printed its address since it was launched. A node that ended instead is launched
    /// again, a second later.
    func hasComeBack() throws(ChildProcess.Failure) -> Bool {
        if process.hasEnded(), MonotonicClock.nowMs() - launchedMs > 1_000 { try launch() }
        return (try? process.readLine(timeoutMs: 1))?.hasPrefix(Self.prefix) ?? false
    }

    private static func endedEarly(_ name: String, _ process: ChildProcess, _ log: String) -> ChildProcess.Failure {
        ChildProcess.Failure(
            description: "\(name) ended before it listened (\(process.end.map { "\($0)" } ?? "still running"));"
                + " its log is \(log)"
        )
    }
}
