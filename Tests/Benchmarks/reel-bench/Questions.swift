import ReelNet

/// A client that queries a node on this machine over HTTP, on a loop of its own.
final class Questions: Sendable {
    private let port: UInt16
    private let loop: EventLoop
    private let client: LoopBound<HTTPClient>

    init(port: UInt16) throws {
        let loop = try EventLoop()
        self.port = port
        self.loop = loop
        client = try loop.sync { LoopBound(HTTPClient(on: loop), on: loop) }
    }

    deinit { loop.stop() }

    func get(_ target: String) async throws -> HTTPResponse {
        try await client.fetch(HTTPClientRequest("GET", host: "127.0.0.1", port: port, target: target))
    }

    /// Returns the value of a metric. `name` includes its labels.
    func metric(_ name: String) async throws -> Int {
        let text = String(decoding: try await get("/metrics").body, as: UTF8.self)
        let line = text.split(separator: "\n").first { $0.hasPrefix(name + " ") }
        guard let value = line?.split(separator: " ").last.flatMap({ Int($0) }) else {
            throw BenchmarkError("found no number for \(name) in /metrics")
        }
        return value
    }

    /// Returns the last seq that the answering loop has passed on to its clients.
    func head(of stream: String) async throws -> Int {
        let text = String(decoding: try await get("/v1/streams/\(stream)/head").body, as: UTF8.self)
        guard let range = text.firstRange(of: #""head":"#),
            let head = Int(text[range.upperBound...].prefix { $0 == "-" || $0.isNumber })
        else { throw BenchmarkError("found no head in \(text)") }
        return head
    }

    /// Waits until `isSo` returns true, for at most a minute.
    func wait(for what: String, until isSo: (Questions) async throws -> Bool) async throws {
        for _ in 0..<3_000 {
            if try await isSo(self) { return }
            try await Task.sleep(for: .milliseconds(20))
        }
        throw BenchmarkError("\(what): not within a minute")
    }
}
