import Foundation
import NodeTestSupport
import TestSupport
import Testing

@testable import ReelNet

/// Tests which connections the gate admits, and how it refuses the others.
@Suite(.timeLimit(.minutes(5))) struct ConnectionGateTests {
    @Test("each limit refuses and is counted and lets in again") func eachLimitRefusesAnd() throws {
        let gate = ConnectionGate(limit: 3, addressLimit: 2)
        let (one, two) = (
            try SocketAddress("192.0.2.1", port: 1).origin, try SocketAddress("192.0.2.2", port: 1).origin
        )
        #expect([gate.enter(one), gate.enter(one)] == [nil, nil])
        #expect(gate.enter(one) == .address)
        #expect(gate.enter(two) == nil)
        #expect(gate.enter(two) == .connections)
        gate.leave(one)
        #expect(gate.enter(two) == nil)
        gate.leave(two)
        gate.lacksMemory = true
        #expect(gate.enter(one) == .memory)
        gate.lacksMemory = false
        #expect(gate.enter(one) == nil)
        #expect(gate.open == 3)
        for refusal in ConnectionGate.Refusal.allCases { #expect(gate.refused(refusal) == 1) }
    }

    @Test("a customers IPv6 addresses are one") func aCustomersIpv6() throws {
        func origin(_ host: String) throws -> UInt64 { try SocketAddress(host, port: 1).origin }
        #expect(try origin("2001:db8:0:1::1") == origin("2001:db8:0:1:ffff::2"))
        #expect(try origin("2001:db8:0:1::1") != origin("2001:db8:0:2::1"))
        #expect(try origin("::ffff:192.0.2.1") == origin("192.0.2.1"))
        #expect(try origin("192.0.2.1") != origin("192.0.2.2"))
    }

    @Test("the server answers 503 to connections above the address limit and serves the others")
    func enforcesAddressLimit() async throws {
        let gate = ConnectionGate(limit: 10, addressLimit: 2)
        var settings = HTTPServer.Settings.patient
        // A client that sends no request gets the refusal after this time.
        settings.reserveDeadline = .milliseconds(100)
        let server = try EchoServer(settings, gate: gate)
        let inside = try (0..<2).map { _ in try RawSocket(server.address) }
        try await eventually { gate.open == 2 }
        for request in ["GET /echo HTTP/1.1\r\nHost: a\r\n\r\n", ""] {
            let socket = try RawSocket(server.address)
            socket.send(request)
            let answer = socket.receiveAll()
            #expect(answer.hasPrefix("HTTP/1.1 503") && answer.contains("of this address"), "\(request)")
        }
        for socket in inside {
            socket.send("GET /echo HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
            #expect(socket.receiveAll().hasPrefix("HTTP/1.1 200"))
            socket.endSending()
        }
        try await eventually { gate.open == 0 }
        let later = try RawSocket(server.address)
        later.send("GET /echo HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        #expect(later.receiveAll().hasPrefix("HTTP/1.1 200"))
    }

    @Test("the gate counts the client that a trusted proxy names, not the proxy") func countsProxiedClient()
        async throws
    {
        let gate = ConnectionGate(limit: 10, addressLimit: 1)
        var settings = HTTPServer.Settings.patient
        settings.trustedProxies = try AddressRanges(parsing: "127.0.0.0/8")
        let server = try EchoServer(settings, gate: gate)
        func begin(_ client: String?) throws -> RawSocket {
            let socket = try RawSocket(server.address)
            if let client { socket.send("PROXY TCP4 \(client) 10.0.0.1 1 2\r\n") }
            socket.send("GET /echo HTTP/1.1\r\nHost: a\r\n\r\n")
            return socket
        }
        let first = try begin("192.0.2.1")
        #expect(first.receive(until: "\r\n\r\n").hasPrefix("HTTP/1.1 200"))
        let second = try begin("192.0.2.1")
        #expect(second.receiveAll().hasPrefix("HTTP/1.1 503"))
        // The gate admits other connections of the proxy: one of another client, two of its own, and one
        // whose header names a local address.
        let others = try [begin("192.0.2.2"), begin(nil), begin(nil), begin("127.0.0.1")]
        for other in others { #expect(other.receive(until: "\r\n\r\n").hasPrefix("HTTP/1.1 200")) }
        first.reset()
        try await eventually("its place is free") { gate.open == 4 }
        let third = try begin("192.0.2.1")
        #expect(third.receive(until: "\r\n\r\n").hasPrefix("HTTP/1.1 200"))
    }

    @Test("a proxys header from a stranger is no request") func aProxysHeaderFrom() throws {
        let server = try EchoServer(HTTPServer.Settings.patient, gate: ConnectionGate(limit: 10))
        let socket = try RawSocket(server.address)
        socket.send("PROXY TCP4 192.0.2.1 10.0.0.1 1 2\r\nGET /echo HTTP/1.1\r\nHost: a\r\n\r\n")
        #expect(socket.receiveAll().hasPrefix("HTTP/1.1 400"))
    }

    @Test("the full server answers one health request per connection, even while many idle connections wait")
    func healthBeyondTheLimit() async throws {
        let gate = ConnectionGate(limit: 2)
        var settings = HTTPServer.Settings.patient
        settings.reserveDeadline = .seconds(600)
        let server = try EchoServer(settings, gate: gate)
        let inside = try (0..<2).map { _ in try RawSocket(server.address) }
        try await eventually { gate.open == 2 }
        let waiting = try (0..<40).map { _ in try RawSocket(server.address) }
        let check = try RawSocket(server.address)
        check.send("GET /health HTTP/1.1\r\nHost: a\r\n\r\nGET /health HTTP/1.1\r\nHost: a\r\n\r\n")
        let answer = check.receiveAll()
        #expect(answer.hasPrefix("HTTP/1.1 200") && answer.lowercased().contains("connection: close"), "\(answer)")
        #expect(answer.ranges(of: "HTTP/1.1").count == 1)
        for socket in waiting.prefix(25) { #expect(socket.receiveAll().hasPrefix("HTTP/1.1 503"), "it gave way") }
        #expect(gate.open == 2 && gate.refused(.connections) == 41)
        inside[0].send("GET /echo HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        #expect(inside[0].receiveAll().hasPrefix("HTTP/1.1 200"))
        inside[0].endSending()
        try await eventually { gate.open == 1 }
    }

    @Test("without memory a body that is under way grows no further") func withoutMemoryABody() async throws {
        let gate = ConnectionGate(limit: 10)
        let server = try EchoServer(gate: gate)
        let part = [UInt8](repeating: UInt8(ascii: "x"), count: 1_000)
        func begin(_ framing: String) throws -> RawSocket {
            let socket = try RawSocket(server.address)
            socket.send("POST /echo HTTP/1.1\r\nHost: a\r\n\(framing)")
            socket.send(part)
            return socket
        }
        let short = try begin("Content-Length: 2000\r\n\r\n")
        let long = [
            try begin("Content-Length: 900000\r\n\r\n"), try begin("Transfer-Encoding: chunked\r\n\r\nDBBA0\r\n"),
        ]
        try await eventually { gate.open == 3 }
        gate.lacksMemory = true
        for socket in long {
            socket.send([UInt8](repeating: UInt8(ascii: "x"), count: 20_000))
            let answer = socket.receiveAll()
            #expect(answer.hasPrefix("HTTP/1.1 503") && answer.contains("as much memory as it may have"))
        }
        short.send(part)
        #expect(short.receive(until: "xx").hasPrefix("HTTP/1.1 200"), "what is short is taken")

        gate.lacksMemory = false
        let later = try begin("Content-Length: 40000\r\nConnection: close\r\n\r\n")
        for _ in 0..<39 { later.send(part) }
        #expect(later.receiveAll().hasPrefix("HTTP/1.1 200"))
    }

    @Test("without memory a message that is under way grows no further") func withoutMemoryAMessage() async throws {
        let gate = ConnectionGate(limit: 10)
        let server = try EchoServer(gate: gate)
        let sockets = try (0..<2).map { _ in
            let socket = try RawSocket(server.address)
            socket.send(
                "GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
                    + "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
            )
            #expect(socket.receive(until: "\r\n\r\n").hasPrefix("HTTP/1.1 101"))
            return socket
        }
        gate.lacksMemory = true
        // The header announces 60,000 bytes of text, of which 20,000 follow, masked by zeros.
        sockets[0].send([0x81, 0xFE, 0xEA, 0x60, 0, 0, 0, 0] + [UInt8](repeating: UInt8(ascii: "x"), count: 20_000))
        var answer: [UInt8] = []
        while case let bytes = sockets[0].receive(), !bytes.isEmpty { answer += bytes }
        #expect(answer.first == 0x88 && answer.dropFirst(2).starts(with: [0x03, 0xF5]), "1013")
        sockets[1].send([0x81, 0x82, 0, 0, 0, 0, 0x6F, 0x6B])
        #expect(sockets[1].receive(until: "ok").hasSuffix("ok"), "what is short is taken")
    }

    /// The number of connections is far above the limit. The server serves the connected
    /// clients and refuses all others.
    @Test("the full server refuses a flood of connections and serves the connected clients")
    func survivesConnectionFlood() async throws {
        let (room, crowd) = (50, min(300 * effort, 10_000))
        let gate = ConnectionGate(limit: room)
        let server = try EchoServer(gate: gate)
        let inside = try (0..<room).map { _ in try RawSocket(server.address) }
        try await eventually { gate.open == room }
        for start in stride(from: 0, to: crowd, by: 100) {
            let outside = try (start..<start + 100).map { _ in try RawSocket(server.address) }
            for socket in outside { #expect(socket.receiveAll().hasPrefix("HTTP/1.1 503")) }
            let one = inside[start / 100 % room]
            one.send("GET /echo HTTP/1.1\r\nHost: a\r\n\r\n")
            #expect(one.receive(until: "\r\n\r\n").hasPrefix("HTTP/1.1 200"))
        }
        #expect(gate.refused(.connections) == crowd)
        for socket in inside { socket.endSending() }
        try await eventually { gate.open == 0 }
    }
}
