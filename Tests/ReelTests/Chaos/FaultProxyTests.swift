import Foundation
import NodeTestSupport
import ReelBase
import ReelNet
import Synchronization
import TestSupport
import Testing

@testable import ReelLab

/// Tests the effect of a proxy on connections with a node that echoes.
@Suite(.timeLimit(.minutes(20))) struct FaultProxyTests {
    private func echo() throws -> (EchoNode, FaultProxy, RawSocket) {
        let node = try EchoNode()
        let proxy = try FaultProxy(to: node.port)
        let socket = try RawSocket(SocketAddress("127.0.0.1", port: UInt16(proxy.port)))
        #expect(socket.send("hello"))
        #expect(socket.receive(exactly: 5) == "hello")
        return (node, proxy, socket)
    }

    @Test("a delay makes each piece late both ways") func aDelayMakesEach() async throws {
        let (_, proxy, socket) = try echo()
        proxy.strike(.delay(ms: 60))
        try await eventually("the proxy has done it") { proxy.effect.connections == 1 }
        let before = MonotonicClock.nowMs()
        #expect(socket.send("later"))
        #expect(socket.receive(exactly: 5) == "later")
        #expect(MonotonicClock.nowMs() - before >= 120)
        #expect(proxy.heal().bytes == 10)
        proxy.end()
    }

    @Test("a black hole holds everything and gives it back") func aBlackHoleHolds() async throws {
        let (_, proxy, socket) = try echo()
        proxy.strike(.blackhole)
        try await eventually("the proxy has done it") { proxy.effect.connections == 1 }
        #expect(socket.send("held"))
        #expect(!socket.isReadable(withinMs: 100))
        try await eventually("the proxy has done it") { proxy.effect.bytes == 4 }
        proxy.heal()
        #expect(socket.receive(exactly: 4) == "held")
        proxy.end()
    }

    @Test("a reset is felt") func aResetIsFelt() async throws {
        let (_, proxy, socket) = try echo()
        proxy.strike(.reset)
        #expect(socket.receive(exactly: 1) == nil)
        try await eventually("the proxy has done it") { proxy.effect.connections == 1 }
        proxy.end()
    }

    @Test("a half open connection takes words and gives none") func aHalfOpenConnection() async throws {
        let (node, proxy, socket) = try echo()
        proxy.strike(.halfOpen)
        try await eventually("the proxy has done it") { node.ended == 1 }
        #expect(socket.send("anybody?"))
        try await eventually("the proxy has done it") { proxy.effect.bytes == 8 }
        #expect(!socket.isReadable(withinMs: 50))
        proxy.heal()
        #expect(socket.receive(exactly: 1) == nil)
        proxy.end()
    }

    @Test("a swallowed answer was heard by the node") func aSwallowedAnswerWas() async throws {
        let (node, proxy, socket) = try echo()
        proxy.strike(.swallow)
        try await eventually("the proxy has done it") { proxy.effect.connections == 1 }
        #expect(socket.send("done?"))
        #expect(socket.receive(exactly: 1) == nil)
        #expect(node.heard == 10)
        proxy.end()
    }

    @Test("a node that is not there ends the connection") func aNodeThatIs() async throws {
        let nobody = try HeldPort()
        let proxy = try FaultProxy(to: nobody.number)
        #expect(try RawSocket(SocketAddress("127.0.0.1", port: UInt16(proxy.port))).receive(exactly: 1) == nil)
        proxy.end()
        withExtendedLifetime(nobody) {}
    }

    @Test("a connection that came after the strike is met too") func aConnectionThatCame() async throws {
        for fault in [FaultProxy.Fault.swallow, .delay(ms: 20)] {
            let (_, proxy, early) = try echo()
            proxy.strike(fault)
            try await eventually("the proxy has done it") { proxy.effect.connections == 1 }
            let late = try RawSocket(SocketAddress("127.0.0.1", port: UInt16(proxy.port)))
            try await eventually("the proxy has done it") { proxy.effect.connections == 2 }
            #expect(late.send("done?"))
            #expect(late.receive(exactly: 5) == (fault == .swallow ? nil : "done?"))
            #expect(!early.isReadable(withinMs: 0))
            proxy.end()
        }
    }

    /// The proxy waits for such a client in `poll`, and does not ask repeatedly.
    @Test("a client that does not read costs no turns") func aClientThatDoes() async throws {
        let node = try TalkingNode()
        let (listener, port) = try FaultProxy.listen()
        var bell: [Int32] = [0, 0]
        try #require(pipe(&bell) == 0)
        defer { close(bell[1]) }
        ProxyLine.unblock(bell[0])
        var line = ProxyLine(bell: bell[0], listener: listener, node: node.port)
        defer { line.end() }
        let client = try RawSocket(SocketAddress("127.0.0.1", port: port))
        // The time until the node begins does not count as waiting for the client.
        try await eventually("the proxy has done it") {
            line.step()
            return client.isReadable(withinMs: 0)
        }
        var longestMs: Int64 = 0
        // The proxy steps until the connection is full, and a few times more.
        for _ in 0..<100_000 where longestMs < 500 {
            let before = MonotonicClock.nowMs()
            line.step()
            longestMs = max(longestMs, MonotonicClock.nowMs() - before)
        }
        #expect(longestMs >= 500)
    }
}

/// A node that echoes, with a thread for each connection.
private final class EchoNode: Sendable {
    private struct Counts {
        var heard = 0
        var ended = 0
    }

    let port: UInt16
    private let counts = Mutex(Counts())

    init() throws {
        let listener = streamSocket()
        var address = ProxyLine.loopback(0)
        var size = socklen_t(MemoryLayout<sockaddr_in>.size)
        withUnsafeMutablePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(listener, $0, size)
                listen(listener, 8)
                getsockname(listener, $0, &size)
            }
        }
        port = UInt16(bigEndian: address.sin_port)
        Thread.detachNewThread { [self] in
            while case let client = accept(listener, nil, nil), client >= 0 {
                Thread.detachNewThread { [self] in echo(client) }
            }
        }
    }

    var heard: Int { counts.withLock { $0.heard } }
    var ended: Int { counts.withLock { $0.ended } }

    private func echo(_ client: Int32) {
        var buffer = [UInt8](repeating: 0, count: 4_096)
        while case let count = read(client, &buffer, buffer.count), count > 0 {
            counts.withLock { $0.heard += count }
            send(client, buffer, count, Int32(MSG_NOSIGNAL))
        }
        Glibc.close(client)
        counts.withLock { $0.ended += 1 }
    }
}

/// A node that sends without end to every connection, with a thread for each.
private final class TalkingNode: Sendable {
    let port: UInt16

    init() throws {
        let (listener, port) = try FaultProxy.listen()
        self.port = port
        _ = fcntl(listener, F_SETFL, 0)
        Thread.detachNewThread {
            let client = accept(listener, nil, nil)
            let words = [UInt8](repeating: 0x61, count: 65_536)
            while send(client, words, words.count, Int32(MSG_NOSIGNAL)) > 0 {}
            Glibc.close(client)
            Glibc.close(listener)
        }
    }
}
