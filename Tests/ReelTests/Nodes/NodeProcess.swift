import Foundation
import ReelLab
import ReelNet
import Testing

/// A node as a process of its own, which can be killed and started again where it was.
final class NodeProcess {
    let name: String
    let folder: TemporaryFolder
    private var words: [String]
    private let shell: String
    private(set) var process: ChildProcess
    private(set) var port: UInt16 = 0

    /// Starts `reel` with these words on a free port, and waits for its first line, which says where it listens.
    /// `shell` stands in front of it, such as `ulimit -n 40;`.
    init(_ words: [String], in folder: TemporaryFolder, name: String = "node", shell: String = "") throws {
        self.words = words
        self.folder = folder
        self.name = name
        self.shell = shell
        process = try Self.process(words, port: 0, folder, name, shell)
        try awaitItsFirstLine()
    }

    /// Both roles in one process, with all its files in the folder.
    static func serve(in folder: TemporaryFolder, data: String? = nil, shell: String = "") throws -> NodeProcess {
        try NodeProcess(["serve", "--data", data ?? folder.path + "/data"], in: folder, shell: shell)
    }

    /// A gateway on the log of the folder.
    static func gateway(_ name: String = "gateway", in folder: TemporaryFolder) throws -> NodeProcess {
        try NodeProcess(["gateway", "--log", "sqlite:\(folder.path)/log.sqlite"], in: folder, name: name)
    }

    /// A snapshot node on the log of the folder, with a data folder of its own.
    static func snapshot(_ name: String = "snapshot", in folder: TemporaryFolder) throws -> NodeProcess {
        try NodeProcess(
            ["snapshot", "--log", "sqlite:\(folder.path)/log.sqlite", "--data", "\(folder.path)/\(name)"],
            in: folder,
            name: name
        )
    }

    var url: String { "http://127.0.0.1:\(port)" }

    /// What it has written to standard error.
    var journal: String { (try? String(contentsOfFile: "\(folder.path)/\(name).log", encoding: .utf8)) ?? "" }

    /// Kills it, and starts it again on its port, with more words behind those that it had.
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
        try ChildProcess(
            "/bin/bash",
            ["-c", Shell.closingWhatIsInherited + shell + " exec \"$0\" \"$@\"", BuiltProgram.path] + words + [
                "--listen", "127.0.0.1:\(port)",
            ],
            errorLog: "\(folder.path)/\(name).log"
        )
    }

    private func awaitItsFirstLine() throws {
        let line = try process.readLine(timeoutMs: 60_000) ?? ""
        guard line.hasPrefix("listening on 127.0.0.1:"), let port = UInt16(line.split(separator: ":").last ?? "") else {
            process.wait(timeoutMs: 1_000)
            throw NeverCame(description: "`listening on HOST:PORT` of \(name): `\(line)`, \(journal)")
        }
        self.port = port
    }

    // MARK: Asking

    /// Asks it over HTTP; throws where it does not answer.
    func ask(_ method: String, _ target: String, body: String = "") async throws -> HTTPResponse {
        try await Asker.ask(method, port: port, target, body: body)
    }

    /// The members of the JSON that it answers with.
    func members(_ target: String) async throws -> [String: Any] {
        try JSONSerialization.jsonObject(with: Data(try await ask("GET", target).body)) as? [String: Any] ?? [:]
    }

    /// Waits until a stream is folded here, or where this node asks, up to a seq; then its snapshot.
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

/// Asks nodes over HTTP, for all tests.
enum Asker {
    private static let client = Result {
        let loop = try EventLoop()
        return try loop.sync { LoopBound(HTTPClient(on: loop), on: loop) }
    }

    /// The answer; throws where there is none.
    static func ask(_ method: String, port: UInt16, _ target: String, body: String) async throws -> HTTPResponse {
        var request = HTTPClientRequest(method, host: "127.0.0.1", port: port, target: target, body: Array(body.utf8))
        if !body.isEmpty { request.headers.add("content-type", "application/json") }
        return try await client.get().fetch(request)
    }
}
