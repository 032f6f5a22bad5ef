import Foundation
import NodeTestSupport
import Synchronization
import TestSupport
import Testing

@testable import ReelNet

@Suite(.timeLimit(.minutes(5))) struct TLSTests {
    @Test("requests and answers of any size go through") func requestsAndAnswersOf() async throws {
        guard let certificates = try Certificates() else { return }
        let server = try secureServer(certificates)
        let client = try SecureClient(certificates.client())
        for size in [0, 1, 16_384, 16_385, 900_000] {
            let body = (0..<size).map { UInt8(truncatingIfNeeded: $0 &* 31) }
            let response = try await client.fetch("POST", "/echo", server, body)
            #expect(response.body == body)
        }
        #expect(try await client.fetch("GET", "/stream?bytes=3000001", server).body.count == 3_000_001)
        #expect(try server.counters.accepted == 1)
    }

    @Test("a WebSocket talks and closes in order") func aWebsocketTalksAnd() async throws {
        guard let certificates = try Certificates() else { return }
        let server = try secureServer(certificates)
        let client = try SecureClient(certificates.client())
        let long = [UInt8](repeating: UInt8(ascii: "x"), count: 2_000_000)
        let messages = [Array("now".utf8), Array("one".utf8), [], long]
        #expect(try await client.echo(messages, server) == messages)
        while try server.counters.open > 0 { await Task.yield() }
    }

    // MARK: Trust

    @Test("a client does not trust a server without a certificate from a known CA") func rejectsUnknownCA() async throws
    {
        guard let certificates = try Certificates(), let others = try Certificates() else { return }
        let server = try secureServer(certificates)
        try await expect(.certificate, ["127.0.0.1", "CN=server", "Test Authority"]) {
            _ = try await SecureClient(others.client()).fetch("GET", "/echo", server)
        }
        try await expect(.certificate, ["127.0.0.1", "CN=server"]) {
            _ = try await SecureClient(TLSClient()).fetch("GET", "/echo", server)
        }
        while try server.counters.open > 0 { await Task.yield() }
        #expect(try server.counters.refused == 2)
        #expect(try server.counters.requests == 0)
    }

    @Test("a server of another name is not trusted") func aServerOfAnother() async throws {
        guard let certificates = try Certificates() else { return }
        try certificates.make("server", for: "DNS:reel.example,IP:127.0.0.2")
        let server = try secureServer(certificates)
        for host in ["127.0.0.1", "localhost"] {
            try await expect(.certificate, [host, "mismatch", "DNS:reel.example", "IP Address:127.0.0.2"]) {
                _ = try await SecureClient(certificates.client()).fetch("GET", "/echo", server, host: host)
            }
        }
    }

    @Test("the name is asked for and checked") func theNameIsAsked() async throws {
        guard let certificates = try Certificates() else { return }
        try certificates.make("server", for: "DNS:localhost")
        let server = try secureServer(certificates)
        let client = try SecureClient(certificates.client())
        #expect(try await client.fetch("GET", "/echo", server, host: "localhost").status == 200)
    }

    // MARK: Files

    @Test("a wrong file is named with what is wrong") func aWrongFileIs() throws {
        guard let certificates = try Certificates() else { return }
        try certificates.make("server")
        try certificates.make("other")
        try certificates.make("old", days: -1)
        try Certificates.run(
            "openssl ec -in server.key -aes128 -passout pass:secret -out locked.key && echo hello > hello.pem",
            in: certificates.folder
        )
        let cases: [(String, String, [String])] = [
            ("none.pem", "server.key", ["certificate file", "none.pem", "No such file"]),
            ("server.pem", "none.key", ["key file", "none.key", "No such file"]),
            ("hello.pem", "server.key", ["hello.pem", "no certificate"]),
            ("server.pem", "hello.pem", ["hello.pem", "no private key"]),
            ("server.pem", "locked.key", ["locked.key", "passphrase"]),
            ("server.pem", "other.key", ["other.key", "server.pem", "not the one"]),
            ("old.pem", "old.key", ["CN=old", "old.pem", "expired on"]),
        ]
        for (certificate, key, words) in cases {
            let error = #expect(throws: NetError.self) {
                try TLSServer(certificateFile: certificates.path(certificate), keyFile: certificates.path(key))
            }
            #expect(error?.code == .certificate)
            for word in words {
                #expect(error?.message.contains(word) == true, "\(error?.message ?? "") lacks \(word)")
            }
        }
        #expect(throws: NetError.self) { try TLSClient(authorities: certificates.path("none.pem")) }
        #expect(throws: NetError.self) { try TLSClient(authorities: certificates.path("hello.pem")) }
    }

    @Test("the server uses reloaded certificates for new connections and drops no connection")
    func reloadsCertificates() async throws {
        guard let certificates = try Certificates() else { return }
        let tls = try certificates.server()
        let server = try EchoServer(secured(tls))
        let old = try SecureClient(certificates.client())
        #expect(try await old.fetch("GET", "/echo", server).status == 200)
        try certificates.make("server", for: "DNS:elsewhere.example")
        try tls.reload()
        // The kept connection still works with the old certificate, and a new connection gets the new one.
        #expect(try await old.fetch("GET", "/echo", server).status == 200)
        #expect(try server.counters.accepted == 1)
        try await expect(.certificate, ["elsewhere.example"]) {
            _ = try await SecureClient(certificates.client()).fetch("GET", "/echo", server)
        }
        try "no certificate".write(toFile: certificates.path("server.pem"), atomically: true, encoding: .utf8)
        #expect(throws: NetError.self) { try tls.reload() }
        try await expect(.certificate, ["elsewhere.example"]) {
            _ = try await SecureClient(certificates.client()).fetch("GET", "/echo", server)
        }
    }

    // MARK: Mistakes and attacks

    @Test("the server answers 400 to plain HTTP on a TLS port and names https") func plainHTTPRefused() throws {
        guard let certificates = try Certificates() else { return }
        let server = try secureServer(certificates)
        let socket = try RawSocket(server.address)
        socket.send("GET / HTTP/1.1\r\nhost: a\r\n\r\n")
        let answer = socket.receiveAll()
        #expect(answer.hasPrefix("HTTP/1.1 400 "))
        #expect(answer.contains("https://"))
    }

    @Test("a TLS client on a plain port gets an error that names the cause") func tlsOnPlainPort() async throws {
        guard let certificates = try Certificates() else { return }
        let plain = try EchoServer()
        try await expect(.tls, ["does not speak TLS", "http://"]) {
            _ = try await SecureClient(certificates.client()).fetch("GET", "/echo", plain)
        }
        let secure = try secureServer(certificates)
        let mistaken = try SecureClient(nil)
        #expect(try await mistaken.fetch("GET", "/echo", secure).status == 400)
    }

    @Test("the server cuts off a client that does not complete the TLS handshake") func handshakeTimesOut() throws {
        guard let certificates = try Certificates() else { return }
        var settings = secured(try certificates.server())
        settings.headDeadline = .milliseconds(150)
        let server = try EchoServer(settings)
        for beginning in [[], [0x16, 0x03, 0x01, 0x02, 0x00, 0x01], [0x16, 0x03]] as [[UInt8]] {
            let socket = try RawSocket(server.address)
            socket.send(beginning)
            #expect(socket.receiveAll() == "")
        }
    }

    @Test("noise ends the connection and nothing else") func noiseEndsTheConnection() async throws {
        guard let certificates = try Certificates() else { return }
        let server = try secureServer(certificates)
        var random = SeededNumbers(TestSeed.value)
        for _ in 0..<50 {
            let socket = try RawSocket(server.address)
            let noise = (0..<Int.random(in: 1...2000, using: &random)).map { _ in
                UInt8.random(in: 0...255, using: &random)
            }
            socket.send([0x16, 0x03, 0x01] + noise)
        }
        #expect(try await SecureClient(certificates.client()).fetch("GET", "/echo", server).status == 200)
    }

    @Test("an answer that is cut short is no answer") func anAnswerThatIs() async throws {
        guard let certificates = try Certificates() else { return }
        let server = try CuttingServer(certificates.server())
        let client = try SecureClient(certificates.client())
        #expect(try await client.fetch("GET", "/whole", port: server.port).body == Array("all there is".utf8))
        try await expect(.reset, ["broke off TLS"]) {
            _ = try await client.fetch("GET", "/cut", port: server.port)
        }
    }

    /// The server finishes the connection while its last bytes wait for a client that does not read.
    /// Its deadline passes meanwhile.
    @Test("a slow reader gets all and the word that it is all") func aSlowReaderGets() async throws {
        guard let certificates = try Certificates() else { return }
        let server = try CuttingServer(certificates.server())
        let client = try SecureClient(certificates.client())
        let (read, sent) = try await client.fetchLate("/slow", port: server.port) {
            server.counts.add("reader waits")
            try await eventually { server.counts["asked again"] >= 2 }
            return server.counts["pieces"]
        }
        #expect(read == sent * CuttingServer.pieceBytes)
    }

    private func expect(_ code: NetError.Code, _ words: [String], _ body: () async throws -> Void) async throws {
        let error = await #expect(throws: NetError.self) { try await body() }
        #expect(error?.code == code, "\(String(describing: error))")
        for word in words { #expect(error?.message.contains(word) == true, "\(error?.message ?? "") lacks \(word)") }
    }
}

func secured(_ tls: TLSServer) -> HTTPServer.Settings {
    var settings = HTTPServer.Settings.patient
    settings.tls = tls
    return settings
}

func secureServer(_ certificates: Certificates) throws -> EchoServer {
    try EchoServer(secured(certificates.server()))
}

/// A client on a loop of its own; with nil it uses no TLS.
final class SecureClient: Sendable {
    private let loop: EventLoop
    private let client: LoopBound<HTTPClient>
    private let tls: TLSClient?

    init(_ tls: TLSClient?) throws {
        let loop = try EventLoop()
        self.loop = loop
        self.tls = tls
        client = try loop.sync { LoopBound(HTTPClient(on: loop, idleDeadline: .seconds(600)), on: loop) }
    }

    deinit {
        loop.stop()
        loop.join()
    }

    func fetch(
        _ method: String,
        _ target: String,
        _ server: EchoServer,
        _ body: [UInt8] = [],
        host: String = "127.0.0.1"
    ) async throws -> HTTPResponse {
        try await fetch(method, target, port: server.address.port, body, host: host)
    }

    func fetch(
        _ method: String,
        _ target: String,
        port: UInt16,
        _ body: [UInt8] = [],
        host: String = "127.0.0.1"
    ) async throws -> HTTPResponse {
        var request = HTTPClientRequest(method, host: host, port: port, target: target)
        request.body = body
        request.tls = tls
        request.timeout = .seconds(600)
        return try await client.fetch(request)
    }

    /// Sends a request, and reads nothing after the head until `go` has returned. Returns the size of
    /// the body and the result of `go`.
    func fetchLate(_ target: String, port: UInt16, _ go: () async throws -> Int) async throws -> (Int, Int) {
        final class Reading: @unchecked Sendable {
            var call: HTTPCall?
            var bytes = 0
        }
        let reading = Reading()
        let (ends, end) = AsyncThrowingStream<Void, any Error>.makeStream()
        let (pauses, paused) = AsyncStream<Void>.makeStream()
        var request = HTTPClientRequest("GET", host: "127.0.0.1", port: port, target: target)
        request.tls = tls
        request.timeout = .seconds(600)
        loop.execute { [client, request] in
            reading.call = client.value.send(request) { event in
                switch event {
                case .head:
                    reading.call?.pause()
                    paused.finish()
                case .data(let bytes): reading.bytes += bytes.count
                case .end: end.finish()
                case .failed(let error):
                    paused.finish()
                    end.finish(throwing: error)
                }
            }
        }
        for await _ in pauses {}
        let said = try await go()
        loop.execute { reading.call?.resume() }
        for try await _ in ends {}
        return (reading.bytes, said)
    }

    /// Sends the messages one after another over a WebSocket, and returns the echoes.
    func echo(_ messages: [[UInt8]], _ server: EchoServer) async throws -> [[UInt8]] {
        try await withCheckedThrowingContinuation { continuation in
            loop.execute { [loop, tls] in
                var target = WebSocketTarget.patient(server.address.port)
                target.tls = tls
                let talk = Talk(messages) { continuation.resume(with: $0) }
                WebSocketClient.connect(on: loop, to: target, handler: talk) { talk.finish(.failure($0)) }
            }
        }
    }
}

private final class Talk: WebSocketHandler {
    private let messages: [[UInt8]]
    private var answers: [[UInt8]] = []
    private var then: ((Result<[[UInt8]], any Error>) -> Void)?

    init(_ messages: [[UInt8]], then: @escaping (Result<[[UInt8]], any Error>) -> Void) {
        self.messages = messages
        self.then = then
    }

    func finish(_ result: Result<[[UInt8]], any Error>) {
        then?(result)
        then = nil
    }

    func opened(_ socket: WebSocket) {
        for message in messages { socket.send(text: message) }
    }

    func received(text: [UInt8], from socket: WebSocket) {
        answers.append(text)
        if answers.count == messages.count { socket.close() }
    }

    func closed(_ socket: WebSocket, code: UInt16, reason: String) {
        finish(code == 1000 ? .success(answers) : .failure(NetError(.closed, "\(code) \(reason)")))
    }
}

/// A server whose answers end with the connection: `/whole` ends in order, and `/cut` aborts. `/slow` writes pieces
/// until the kernel takes no more.
private final class CuttingServer: Sendable {
    static let pieceBytes = 32 << 10
    let port: UInt16
    let counts = Counts()
    private let loop: EventLoop

    init(_ tls: TLSServer) throws {
        let loop = try EventLoop()
        self.loop = loop
        port = try loop.sync { [counts] in
            let listener = try TCPListener(on: loop, address: SocketAddress("127.0.0.1", port: 0)) { socket in
                guard let tcp = try? TCPConnection(loop: loop, descriptor: socket.descriptor),
                    let session = try? TLSSession(tls)
                else { return }
                tcp.handler = Cutter(tcp, counts)
                tcp.secure(session)
                tcp.resumeReading()
            }
            return listener.address.port
        }
    }

    deinit {
        loop.stop()
        loop.join()
    }

    private final class Cutter: TCPHandler {
        private let tcp: TCPConnection
        private let counts: Counts
        private var path = ""
        /// The number of deadlines that have passed since the kernel last took all bytes,
        /// while the client reads nothing.
        private var waited = 0

        init(_ tcp: TCPConnection, _ counts: Counts) {
            self.tcp = tcp
            self.counts = counts
        }

        func received(_ bytes: Span<UInt8>) {
            let text = bytes.withUnsafeBufferPointer { String(decoding: $0, as: UTF8.self) }
            path = text.components(separatedBy: " ")[1]
            tcp.write(Array("HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n".utf8))
            if path != "/slow" { tcp.write(Array("all there is".utf8)) }
            if path == "/whole" { tcp.finish() }
        }

        func drained() {
            if path == "/cut" { return tcp.close() }
            guard path == "/slow", !tcp.isClosed else { return }
            tcp.write([UInt8](repeating: 0x61, count: pieceBytes))
            counts.add("pieces")
            waited = 0
            tcp.setDeadline(.milliseconds(100))
        }

        func deadlinePassed() {
            if counts["reader waits"] > 0 { waited += 1 }
            // By now the kernel's buffer is full.
            if waited == 3 { tcp.finish() }
            if waited > 3 { counts.add("asked again") }
            tcp.setDeadline(.milliseconds(100))
        }

        func ended() {}
        func closed(_ error: NetError?) {}
    }
}
