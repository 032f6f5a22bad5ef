import Foundation
import NodeTestSupport
import TestSupport
import Testing

@testable import ReelNet

@Suite(.timeLimit(.minutes(5))) struct HTTPServerTests {
    @Test(
        "a body that the head shows to be unwanted is refused before it comes",
        arguments: [
            "Content-Length: 900000\r\n", "Transfer-Encoding: chunked\r\n",
            "Content-Length: 5\r\nExpect: 100-continue\r\n",
        ]
    )
    func unwantedBodies(framing: String) throws {
        let server = try EchoServer()
        let socket = try RawSocket(server.address)
        socket.send("POST /refused HTTP/1.1\r\nHost: a\r\n\(framing)\r\n")
        let answer = socket.receiveAll()
        #expect(answer.hasPrefix("HTTP/1.1 401") && answer.lowercased().contains("connection: close"), "\(answer)")
    }

    @Test("the server answers pipelined requests of one packet in order") func answersInOrder() throws {
        let server = try EchoServer()
        let socket = try RawSocket(server.address)
        socket.send(
            "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\none"
                + "GET /later HTTP/1.1\r\nHost: a\r\n\r\n"
                + "POST /echo HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 5\r\n\r\nthree"
        )
        let answer = socket.receiveAll()
        let bodies = answer.components(separatedBy: "\r\n\r\n").dropFirst().map {
            $0.components(separatedBy: "HTTP")[0]
        }
        #expect(bodies == ["one", "7", "three"])
        #expect(answer.components(separatedBy: "connection: close").count == 2)
    }

    @Test("holds pipelined requests while one is answered") func holdsPipelinedRequestsWhile() throws {
        let server = try EchoServer()
        let socket = try RawSocket(server.address)
        let request =
            "POST /later HTTP/1.1\r\nHost: a\r\nContent-Length: 10000\r\n\r\n" + String(repeating: "b", count: 10_000)
        let count = 100
        DispatchQueue.global().async { for _ in 0..<count { socket.send(request) } }
        var answer = ""
        while answer.components(separatedBy: "200 OK").count <= count { answer += socket.receive(until: "\r\n\r\n7") }
        #expect(try server.counters.requests == count)
    }

    @Test("streams more than the kernel takes to a slow reader") func streamsMoreThanThe() throws {
        let server = try EchoServer()
        let socket = try RawSocket(server.address)
        socket.send("GET /stream?bytes=20000000 HTTP/1.0\r\n\r\n")
        var received = socket.receive(until: "\r\n\r\n").components(separatedBy: "\r\n\r\n")[1].utf8.count
        received += socket.receiveAll().utf8.count
        #expect(received == 20_000_000)
    }

    @Test("a writer waits for a slow reader") func aWriterWaitsFor() async throws {
        let server = try EchoServer()
        let socket = try RawSocket(server.address)
        socket.send("GET /stream?bytes=200000000 HTTP/1.1\r\nHost: a\r\n\r\n")
        _ = socket.receive(16)
        // The server serves another connection and has not produced the whole stream in memory.
        let other = try RawSocket(server.address)
        other.send("GET /later HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        #expect(other.receiveAll().hasSuffix("7"))
        #expect(try #require(server.onHandler { $0.mostPending }) < 1_000_000)
    }

    @Test("the server stops reading requests from a client that does not read its answers")
    func pausesForUnreadAnswers() async throws {
        let server = try EchoServer()
        let socket = try RawSocket(server.address)
        let body = String(repeating: "b", count: 10_000)
        let request = "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: \(body.utf8.count)\r\n\r\n" + body
        let count = 3000
        DispatchQueue.global().async { for _ in 0..<count { socket.send(request) } }
        try await eventually { try server.onHandler { $0.mostPending } ?? 0 > 200_000 }
        for _ in 0..<300 { #expect(try #require(server.onHandler { $0.mostPending }) < 600_000) }
        var received = 0
        while received < count * 10_000 { received += socket.receive(1 << 20).count }
        try await eventually { try server.counters.requests == count }
    }

    @Test("slow heads are ended while others continue") func slowHeadsAreEnded() async throws {
        var settings = HTTPServer.Settings.patient
        settings.headDeadline = .milliseconds(200)
        let server = try EchoServer(settings)
        func isServed(_ socket: RawSocket) -> Bool {
            socket.send("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi")
            return socket.receive(until: "hi").contains("200 OK")
        }
        // The first request of a connection has a deadline, too. After it the connection may be idle.
        var quick = try RawSocket(server.address)
        while !isServed(quick) { quick = try RawSocket(server.address) }
        var slow: [RawSocket] = []
        while case let refused = try server.counters.refused, refused < 200 {
            // The server ends a connection without an answer if no byte of a head has come in
            // time. The test replaces it.
            if try server.counters.open <= 1 {
                for _ in refused..<200 {
                    let socket = try RawSocket(server.address)
                    socket.send("GET / HTTP/1.1\r\nHo")
                    slow.append(socket)
                }
            }
            for socket in slow { socket.send("s") }
            #expect(isServed(quick))
        }
        #expect(slow.contains { $0.receiveAll().contains("408 Request Timeout") })
    }

    @Test("a slow body is ended") func aSlowBodyIs() throws {
        var settings = HTTPServer.Settings.patient
        settings.bodyDeadline = .milliseconds(100)
        let server = try EchoServer(settings)
        let socket = try RawSocket(server.address)
        socket.send("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nabc")
        #expect(socket.receiveAll().contains("408 Request Timeout"))
    }

    @Test("an idle connection is ended without a word") func anIdleConnectionIs() throws {
        var settings = HTTPServer.Settings.patient
        settings.headDeadline = .milliseconds(100)
        let impatient = try EchoServer(settings)
        let silent = try RawSocket(impatient.address)
        #expect(silent.receiveAll() == "")
        let server = try EchoServer(idleDeadline: .milliseconds(100))
        let used = try RawSocket(server.address)
        used.send("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi")
        #expect(used.receiveAll().hasSuffix("\r\n\r\nhi"))
    }

    @Test("a reader that takes nothing is ended") func aReaderThatTakes() async throws {
        let server = try EchoServer(idleDeadline: .milliseconds(100))
        let socket = try RawSocket(server.address)
        socket.send("GET /stream?bytes=200000000 HTTP/1.1\r\nHost: a\r\n\r\n")
        try await eventually { try server.counters.requests == 1 }
        try await eventually { try server.counters.open == 0 }
        #expect(!socket.endsInOrder(), "nor does the kernel keep for it what it does not read")
    }

    /// For some of these sizes, the last bytes wait for the kernel when the server finishes the connection.
    @Test("the server ends a connection when the client reads none of the last bytes") func endsStalledReader()
        async throws
    {
        let server = try EchoServer(idleDeadline: .milliseconds(100))
        let sockets = try (1...30).map { _ in try RawSocket(server.address) }
        for (index, socket) in sockets.enumerated() {
            socket.send("GET /stream?bytes=\((index + 1) * 200_000) HTTP/1.0\r\n\r\n")
        }
        try await eventually { try server.counters.requests == sockets.count }
        try await eventually { try server.counters.open == 0 }
    }

    /// The test needs a real deadline, which passes several times while the client reads the answer. If the client
    /// itself was delayed, the test repeats with more time.
    @Test("the server lets a client read the last answer slowly until the client stops") func toleratesSlowReader()
        async throws
    {
        for seconds in [1, 4, 16, 64] {
            let server = try EchoServer(idleDeadline: .seconds(seconds))
            let socket = try RawSocket(server.address)
            guard let isThere = try staysThere(socket, server, past: .seconds(seconds)) else { continue }
            #expect(isThere)
            try await eventually { try server.counters.open == 0 }
            #expect(!socket.endsInOrder(), "not all of it was read")
            return
        }
        Issue.record("the reader was held up each time")
    }

    /// Reads an answer slowly for three times the deadline. Each read lets the server send more. Returns true if the
    /// connection is still open; nil if two reads were too far apart.
    private func staysThere(_ socket: RawSocket, _ server: EchoServer, past deadline: Duration) throws -> Bool? {
        let start = ContinuousClock.now
        var (last, longest) = (start, Duration.zero)
        var unsent: Int? = Int.max
        socket.send("GET /whole?bytes=200000000 HTTP/1.0\r\n\r\n")
        while let before = unsent, last - start < deadline * 3 {
            while let now = unsent, now >= before {
                let hasEnded = socket.receive().isEmpty
                let left: Int? = try server.onServer { $0.connections.values.first?.pendingBytes }
                unsent = hasEnded ? nil : left
            }
            longest = max(longest, ContinuousClock.now - last)
            last = .now
            usleep(UInt32(deadline / .microseconds(8)))
        }
        return longest < deadline / 2 ? unsent != nil : nil
    }

    @Test("refuses with proper words and ends") func refusesWithProperWords() throws {
        let server = try EchoServer()
        for (request, status) in [
            ("GET / HTTP/1.1\r\n\r\n", "400 Bad Request"), ("GET / HTTP/3.0\r\n\r\n", "505 HTTP Version Not Supported"),
            ("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9999999\r\n\r\n", "413 Content Too Large"),
        ] {
            let socket = try RawSocket(server.address)
            socket.send(request + "and more that nobody reads")
            let answer = socket.receiveAll()
            #expect(answer.hasPrefix("HTTP/1.1 \(status)\r\n"))
            #expect(answer.contains("connection: close\r\n"))
        }
    }

    @Test("the answer reaches a client that still sends") func theAnswerReachesA() throws {
        let server = try EchoServer()
        let socket = try RawSocket(server.address)
        let part = [UInt8](repeating: 0x61, count: 100_000)
        socket.send("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 50000000\r\n\r\n")
        for _ in 0..<20 { socket.send(part) }
        #expect(socket.receive(until: "\r\n\r\n").hasPrefix("HTTP/1.1 413"))
        #expect(socket.endsInOrder())
    }

    @Test("the server answers 408 to an incomplete head after any earlier answer", arguments: ["/later", "/refused"])
    func refusesIncompleteHead(path: String) throws {
        var settings = HTTPServer.Settings.patient
        settings.headDeadline = .milliseconds(50)
        let server = try EchoServer(settings)
        let socket = try RawSocket(server.address)
        let offer = WebSocketTests.handshake.replacing("/ws", with: path)
        socket.send(path == "/refused" ? offer : "GET \(path) HTTP/1.1\r\nHost: a\r\n\r\n")
        _ = socket.receive(until: "\r\n\r\n")
        socket.send("GET /later HTTP/1.1\r\nHos")
        #expect(socket.receiveAll().contains("HTTP/1.1 408"))
    }

    @Test("answers a client that has ended its side") func answersAClientThat() throws {
        let server = try EchoServer()
        let socket = try RawSocket(server.address)
        socket.send("GET /later HTTP/1.1\r\nHost: a\r\n\r\n")
        socket.endSending()
        #expect(socket.receiveAll().hasSuffix("\r\n\r\n7"))
    }

    @Test("the server answers HEAD with the head only and keeps the connection open") func answersHeadRequests() throws
    {
        let server = try EchoServer()
        let socket = try RawSocket(server.address)
        socket.send(
            "HEAD /later HTTP/1.1\r\nHost: a\r\n\r\n" + "HEAD /whole?bytes=20000 HTTP/1.1\r\nHost: a\r\n\r\n"
                + "HEAD /whole?bytes=20000 HTTP/1.1\r\nHost: a\r\nAccept-Encoding: gzip\r\n\r\n"
                + "HEAD /stream?bytes=20000 HTTP/1.1\r\nHost: a\r\n\r\n"
                + "HEAD /unchanged HTTP/1.1\r\nHost: a\r\n\r\n"
                + "GET /later HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
        )
        let parts = socket.receiveAll().components(separatedBy: "\r\n\r\n")
        #expect(parts.count == 7 && parts.last == "7", "\(parts)")
        #expect(parts.dropLast().allSatisfy { $0.hasPrefix("HTTP/1.1 ") }, "\(parts)")
        let lengths = parts.map { part in
            part.components(separatedBy: "\r\n").first { $0.hasPrefix("content-length: ") }?.dropFirst(16)
        }
        #expect(lengths.prefix(5) == ["1", "20000", nil, nil, nil])
        #expect(parts[2].contains("\r\ncontent-encoding: gzip"))
        #expect(parts[3].contains("\r\ntransfer-encoding: chunked"))
    }

    @Test("the server sends the same vary header with an unchanged answer as with the full one")
    func unchangedKeepsVary() throws {
        let server = try EchoServer()
        let socket = try RawSocket(server.address)
        socket.send("GET /unchanged HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        #expect(socket.receiveAll().contains("\r\nvary: accept-encoding\r\n"))
    }

    @Test("drains what is under way") func drainsWhatIsUnder() async throws {
        let server = try EchoServer()
        let idle = try RawSocket(server.address)
        let busy = try RawSocket(server.address)
        busy.send("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nha")
        try await eventually { try server.counters.open == 2 && server.onServer { $0.isBusy } == 1 }
        let counts = Counts()
        try server.onServer { $0.drain { counts.add("drained") } }
        #expect(idle.receiveAll() == "")
        #expect(throws: POSIXError.self) { try RawSocket(server.address) }
        busy.send("lf")
        let answer = busy.receiveAll()
        #expect(answer.hasSuffix("\r\n\r\nhalf") && answer.contains("connection: close"))
        idle.endSending()
        busy.endSending()
        try await eventually { counts["drained"] == 1 }
    }

    @Test("one connection too many is answered 503") func oneConnectionTooMany() async throws {
        let gate = ConnectionGate(limit: 2)
        let server = try EchoServer(gate: gate)
        let first = try RawSocket(server.address)
        let second = try RawSocket(server.address)
        try await eventually { gate.open == 2 }
        let third = try RawSocket(server.address)
        #expect(third.receiveAll().hasPrefix("HTTP/1.1 503"))
        for socket in [first, second] {
            socket.send("GET /echo HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
            #expect(socket.receiveAll().hasPrefix("HTTP/1.1 200"))
        }
    }

    @Test("a port in use is named") func aPortInUse() throws {
        let server = try EchoServer()
        let error = #expect(throws: NetError.self) {
            try server.onServer { other in
                Result { try HTTPServer(on: other.loop, handler: EchoHandler()).listen(on: server.address) }
            }.get()
        }
        #expect(error?.code == .addressInUse)
        #expect(error?.message.contains("\(server.address)") == true)
    }

    @Test("an address of another machine is named") func anAddressOfAnother() throws {
        let server = try EchoServer()
        let error = #expect(throws: NetError.self) {
            try server.onServer { other in
                Result {
                    let address = try SocketAddress("192.0.2.1", port: 0)
                    return try HTTPServer(on: other.loop, handler: EchoHandler()).listen(on: address)
                }
            }.get()
        }
        #expect(error?.code == .badAddress)
    }

    @Test("a burst of connections that break off leaves nothing") func aBurstOfConnections() async throws {
        let server = try EchoServer()
        for round in 0..<200 {
            let socket = try RawSocket(server.address)
            socket.send(String("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nabcd".prefix(round % 60)))
        }
        try await eventually { try server.counters.accepted == 200 && server.counters.open == 0 }
    }
}

extension HTTPServer {
    /// The number of connections with a request in progress.
    var isBusy: Int { connections.values.count { $0.isBusy } }
}
