import Glibc
public import ReelNet

/// Gateways and snapshot nodes of ours on one log, each a process on this machine.
public final class LocalCluster {
    /// What `--log` says.
    public let log: String
    /// `gateway-a`, `gateway-b`, …
    public let gateways: [LocalNode]
    /// `snapshot-a`, `snapshot-b`, …
    public let snapshots: [LocalNode]
    private let http: LoopBound<HTTPClient>

    /// Starts so many of each, with their files in `folder`. `common` is what all get besides the log.
    public init(
        reel: String,
        log: String,
        folder: String,
        gateways: Int = 2,
        snapshots: Int = 1,
        common: [String] = []
    ) throws {
        self.log = log
        let loop = try EventLoop()
        http = try loop.sync { LoopBound(HTTPClient(on: loop), on: loop) }
        func nodes(_ role: String, _ count: Int, _ words: (String) -> [String]) throws -> [LocalNode] {
            try "abcdefgh".prefix(count).map { letter in
                let name = "\(role)-\(letter)"
                let arguments = [role] + words(name) + ["--log", log] + common
                return try LocalNode(name: name, reel: reel, arguments: arguments, folder: folder)
            }
        }
        // One loop each: what one client has an ack for, every other client of that gateway has as its "now".
        self.gateways = try nodes("gateway", gateways) { _ in ["--loops", "1"] }
        self.snapshots = try nodes("snapshot", snapshots) { ["--data", "\(folder)/\($0)"] }
    }

    /// The loop that asks nodes.
    public var loop: EventLoop { http.loop }

    deinit {
        http.loop.stop()
    }

    /// All of them.
    public var nodes: [LocalNode] { gateways + snapshots }

    /// The body of a GET; throws unless the answer is 200.
    public func get(_ node: LocalNode, _ target: String) async throws -> [UInt8] {
        let response = try await ask("GET", node, target)
        guard response.status == 200 else {
            throw ChildProcess.Failure(
                description: "\(node.name) answered \(target) with \(response.status): "
                    + String(decoding: response.body.prefix(300), as: UTF8.self)
            )
        }
        return response.body
    }

    /// What a node answers, whatever it is; a body is JSON.
    public func ask(
        _ method: String,
        _ node: LocalNode,
        _ target: String,
        body: [UInt8] = []
    ) async throws -> HTTPResponse {
        let address = node.url.dropFirst("http://".count)
        guard let (host, port) = SocketAddress.split(String(address)) else {
            throw ChildProcess.Failure(description: "\(node.url) is no address")
        }
        var request = HTTPClientRequest(method, host: host, port: port, target: target, body: body)
        if !body.isEmpty { request.headers.add("content-type", "application/json") }
        return try await http.fetch(request)
    }

    /// Asks all to end, and waits; who takes longer than `timeoutMs` is killed.
    public func end(timeoutMs: Int = 5_000) {
        for node in nodes {
            node.process.resume()
            node.process.signal(SIGTERM)
        }
        for node in nodes { node.process.wait(timeoutMs: timeoutMs) }
    }
}
