import Foundation
import NodeTestSupport
import ReelLab
import ReelNet
import TestSupport
import Testing

@testable import ReelTool

/// A node as a process of its own, which a test can kill and restart with the same port and files.
final class NodeProcess {
    let name: String
    let folder: TemporaryFolder
    private var words: [String]
    private let shell: String
    private(set) var process: ChildProcess
    private let held: HeldPort

    /// Starts `reel` with these arguments on a free port, and waits for its first line, which reports that it listens.
    /// The node may become ready later.
    ///
    /// - Parameter shell: Shell text before the program, such as `ulimit -n 40;`.
    init(_ words: [String], in folder: TemporaryFolder, name: String = "node", shell: String = "") throws {
        self.words = words
        self.folder = folder
        self.name = name
        self.shell = shell
        let held = try HeldPort()
        self.held = held
        process = try Self.process(words, port: held.number, folder, name, shell)
        try awaitItsFirstLine()
    }

    /// Starts a node with both roles, with all its files in the folder.
    static func serve(in folder: TemporaryFolder, data: String? = nil, shell: String = "") throws -> NodeProcess {
        try NodeProcess(["serve", "--data", data ?? folder.path + "/data"], in: folder, shell: shell)
    }

    /// Starts a gateway on the log of the folder.
    static func gateway(_ name: String = "gateway", in folder: TemporaryFolder) throws -> NodeProcess {
        try NodeProcess(["gateway", "--log", "sqlite:\(folder.path)/log.sqlite"], in: folder, name: name)
    }

    /// Starts a snapshot node on the log of the folder, with a data folder of its own.
    static func snapshot(_ name: String = "snapshot", in folder: TemporaryFolder) throws -> NodeProcess {
        try NodeProcess(
            ["snapshot", "--log", "sqlite:\(folder.path)/log.sqlite", "--data", "\(folder.path)/\(name)"],
            in: folder,
            name: name
        )
    }

    var port: UInt16 { held.number }
    var url: String { "http://127.0.0.1:\(port)" }

    /// The text that the node has written to standard error.
    var logger: String { (try? String(contentsOfFile: "\(folder.path)/\(name).log", encoding: .utf8)) ?? "" }

    /// Kills the node and starts it again on its port, with these additional arguments.
    func restart(adding more: [String] = []) throws {
        words += more
        process.killNow()
        process = try Self.process(words, port: port, folder, name, shell)
        try awaitItsFirstLine()
    }

    private static func process(
        _ words: [String],
        port: UInt16,
        _ folder: TemporaryFolder,
        _ name: String,
        _ shell: String
    ) throws -> ChildProcess {
        let line = Shell.closingWhatIsInherited + shell + " exec \"$0\" \"$@\""
        let settings = patience(words) + ["--listen", "127.0.0.1:\(port)"]
        return try ChildProcess(
            "/bin/bash",
            ["-c", line, BuiltProgram.path] + words + settings,
            errorLog: "\(folder.path)/\(name).log"
        )
    }

    /// Returns settings with which a test that is delayed on a busy machine does not count as a client that hangs.
    private static func patience(_ words: [String]) -> [String] {
        let settings = ["--handshake-ms"] + (words.first == "snapshot" ? [] : ["--pong-ms"])
        return settings.filter { !words.contains($0) }.flatMap { [$0, "600000"] }
    }

    private func awaitItsFirstLine() throws {
        for triesLeft in (0..<20).reversed() {
            let line = try process.readLine(timeoutMs: 100_000) ?? ""
            if line == "listening on 127.0.0.1:\(port)" { return }
            process.wait(timeoutMs: 20_000)
            // A node ends if another process locks the log for long, and its operator starts it again.
            guard triesLeft > 0, process.end == .exited(ExitCode.unreachable.rawValue) else {
                throw NeverCame(description: "`listening on HOST:PORT` of \(name): `\(line)`, \(logger)")
            }
            process = try Self.process(words, port: port, folder, name, shell)
        }
    }

    // MARK: Requests

    /// Sends the node an HTTP request. Throws if there is no answer.
    func ask(_ method: String, _ target: String, body: String = "") async throws -> HTTPResponse {
        try await Asker.ask(method, port: port, target, body: body)
    }

    /// Returns the members of the JSON object in the node's answer.
    func members(_ target: String) async throws -> [String: Any] {
        try JSONSerialization.jsonObject(with: Data(try await ask("GET", target).body)) as? [String: Any] ?? [:]
    }

    /// Waits until the node has read the records that the log held at its start.
    func becomesReady() async throws {
        try await eventually("\(name) is ready") { try await ask("GET", "/readyz").status == 200 }
    }

    /// Waits until the node, or the node that it asks, has folded a stream up to a seq. Returns the snapshot.
    func snapshot(of stream: String, upTo seq: Int64 = -1) async throws -> [UInt8] {
        var lines: [UInt8] = []
        try await eventually("a snapshot of \(stream) up to \(seq) from \(name)") {
            guard let answer = try? await ask("GET", "/v1/streams/\(stream)/snapshot"), answer.status == 200,
                let first = answer.body.split(separator: 0x0a).first,
                let head = try JSONSerialization.jsonObject(with: Data(first)) as? [String: Any],
                let found = head["seq"] as? Int64, found >= seq
            else { return false }
            lines = answer.body
            return true
        }
        return lines
    }
}

/// An HTTP client that all tests share.
enum Asker {
    private static let client = Result {
        let loop = try EventLoop()
        return try loop.sync { LoopBound(HTTPClient(on: loop), on: loop) }
    }

    /// Returns the answer. Throws if there is none.
    static func ask(_ method: String, port: UInt16, _ target: String, body: String) async throws -> HTTPResponse {
        var request = HTTPClientRequest(method, host: "127.0.0.1", port: port, target: target, body: Array(body.utf8))
        if !body.isEmpty { request.headers.add("content-type", "application/json") }
        request.timeout = .seconds(100)
        return try await client.get().fetch(request)
    }
}
