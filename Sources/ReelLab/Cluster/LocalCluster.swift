import Glibc
public import ReelNet

/// Reel's gateways and snapshot nodes on one log, each a process on this machine.
public final class LocalCluster {
    /// The value of `--log`.
    public let log: String
    /// The gateways: `gateway-a`, `gateway-b`, …
    public let gateways: [LocalNode]
    /// The snapshot nodes: `snapshot-a`, `snapshot-b`, …
    public let snapshots: [LocalNode]
    private let http: LoopBound<HTTPClient>

    /// Starts the nodes, and waits until they listen.
    ///
    /// - Parameters:
    ///   - reel: the path of the program `reel`.
    ///   - log: the value of `--log`.
    ///   - folder: the folder for the files of all nodes.
    ///   - gateways: the number of gateways, at most 8.
    ///   - snapshots: the number of snapshot nodes, at most 8.
    ///   - common: the arguments of every node besides the log.
    /// - Throws: `ChildProcess.Failure` if a node does not start or does not listen. `NetError` if the process has no
    ///   descriptor or thread left.
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
        // One loop each: when one client has an ack for an event, every other client of that gateway has the event as
        // its "now".
        self.gateways = try nodes("gateway", gateways) { _ in ["--loops", "1"] }
        self.snapshots = try nodes("snapshot", snapshots) { ["--data", "\(folder)/\($0)"] }
    }

    /// The loop that sends requests to nodes.
    public var loop: EventLoop { http.loop }

    deinit {
        http.loop.stop()
    }

    /// All nodes.
    public var nodes: [LocalNode] { gateways + snapshots }

    /// Returns the body of a GET. Throws unless the status is 200.
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

    /// Sends a request, and returns the node's answer with any status.
    ///
    /// - Parameters:
    ///   - method: the method, such as `GET`.
    ///   - node: the node that the request is sent to.
    ///   - target: the path, and the query if there is one.
    ///   - body: the JSON of the body; empty: the request has no body.
    /// - Throws: `NetError` if the node does not answer.
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

    /// Asks all nodes to end, and waits. A node that takes longer than `timeoutMs` is killed.
    public func end(timeoutMs: Int = 5_000) {
        for node in nodes {
            node.process.resume()
            node.process.signal(SIGTERM)
        }
        for node in nodes { node.process.wait(timeoutMs: timeoutMs) }
    }
}
