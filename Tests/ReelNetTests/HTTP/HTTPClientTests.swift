import NodeTestSupport
import Testing

@testable import ReelNet

@Suite struct HTTPClientTests {
    @Test("fetches over one connection again and again") func fetchesOverOneConnection() async throws {
        let server = try EchoServer()
        let (loop, client) = try makeClient()
        defer { end(loop) }
        for round in 0..<5 {
            let body = [UInt8](repeating: UInt8(round), count: round * 50_000)
            let response = try await client.fetch(request("POST", "/echo", server, body))
            #expect(response.status == 200)
            #expect(response.body == body)
        }
        #expect(try server.counters.accepted == 1)
    }

    @Test("streams an answer in chunks") func streamsAnAnswerIn() async throws {
        let server = try EchoServer()
        let (loop, client) = try makeClient()
        defer { end(loop) }
        let response = try await client.fetch(request("GET", "/stream?bytes=3000001", server))
        #expect(response.body.count == 3_000_001)
        #expect(response.headers["transfer-encoding"] == "chunked")
    }

    @Test("refuses an answer beyond its bound") func refusesAnAnswerBeyond() async throws {
        let server = try EchoServer()
        let (loop, client) = try makeClient()
        defer { end(loop) }
        let error = await #expect(throws: NetError.self) {
            try await client.fetch(request("GET", "/stream?bytes=3000000", server), maxBody: 1000)
        }
        #expect(error?.code == .violation)
    }

    @Test("the client reports a timeout when the server does not answer in time") func reportsTimeout() async throws {
        let server = try EchoServer()
        let (loop, client) = try makeClient()
        defer { end(loop) }
        let never = request("GET", "/never", server, timeout: .milliseconds(150))
        let error = await #expect(throws: NetError.self) { try await client.fetch(never) }
        #expect(error?.code == .timedOut)
    }

    @Test("the client reports a refused connection when no server listens") func reportsRefusedConnection() async throws
    {
        let (loop, client) = try makeClient()
        defer { end(loop) }
        let bound = try HeldPort()
        defer { withExtendedLifetime(bound) {} }
        let error = await #expect(throws: NetError.self) {
            try await client.fetch(HTTPClientRequest("GET", host: "127.0.0.1", port: bound.number, target: "/"))
        }
        #expect(error?.code == .refused)
    }

    @Test("asks again what can be asked twice") func asksAgainWhatCan() async throws {
        let server = try EchoServer()
        let (loop, client) = try makeClient()
        defer { end(loop) }
        #expect(try await client.fetch(request("GET", "/every-second", server)).status == 200)
        // The server aborts this request on the kept connection, and the client repeats it on a new one.
        #expect(try await client.fetch(request("GET", "/every-second", server)).status == 200)
        let post = request("POST", "/every-second", server)
        await #expect(throws: NetError.self) { try await client.fetch(post) }
    }

    @Test("asks again where a kept connection has gone") func asksAgainWhereA() async throws {
        let server = try EchoServer(idleDeadline: .milliseconds(1))
        let (loop, client) = try makeClient()
        defer { end(loop) }
        for _ in 0..<3 {
            #expect(try await client.fetch(request("GET", "/echo", server)).status == 200)
            while try server.counters.open > 0 { await Task.yield() }
        }
        #expect(try server.counters.accepted == 3)
    }

    @Test("finds a host by name") func findsAHostBy() async throws {
        let server = try EchoServer()
        let (loop, client) = try makeClient()
        defer { end(loop) }
        var named = request("GET", "/echo", server)
        named.host = "LOCALHOST"
        #expect(try await client.fetch(named).status == 200)
    }

    private func makeClient() throws -> (EventLoop, LoopBound<HTTPClient>) {
        let loop = try EventLoop()
        return (loop, try loop.sync { LoopBound(HTTPClient(on: loop, idleDeadline: .seconds(600)), on: loop) })
    }

    private func end(_ loop: EventLoop) {
        loop.stop()
        loop.join()
    }

    private func request(
        _ method: String,
        _ target: String,
        _ server: EchoServer,
        _ body: [UInt8] = [],
        timeout: Duration = .seconds(600)
    ) -> HTTPClientRequest {
        var request = HTTPClientRequest(method, host: "127.0.0.1", port: server.address.port, target: target)
        request.body = body
        request.timeout = timeout
        return request
    }
}
