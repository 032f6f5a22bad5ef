import Foundation
import NodeTestSupport
import TestSupport
import Testing

@testable import ReelNet

/// Tests that the detector accepts clients that read slowly, and reports clients that do not read.
@Suite(.timeLimit(.minutes(15))) struct SlowReaderDetectorTests {
    private let least = SlowReaderDetector.bytesMin

    @Test("the detector accepts a reader that takes the minimum of the waiting bytes, and no less")
    func requiresMinimumProgress() {
        var pace = SlowReaderDetector()
        #expect(pace.look(written: 10 * least, left: 9 * least) == .nothingWaited, "nobody has looked before")
        #expect(pace.look(written: 20 * least, left: 18 * least) == .reads)
        #expect(pace.look(written: 20 * least, left: 17 * least + 1) == .tooSlow)
    }

    @Test("of little all has to be taken") func ofLittleAllHas() {
        var pace = SlowReaderDetector()
        #expect(pace.look(written: 100, left: 3) == .nothingWaited)
        #expect(pace.look(written: 9 * least, left: 9 * least - 100) == .reads, "what was written since has time")
        #expect(pace.look(written: 9 * least, left: 0) == .reads)
        #expect(pace.look(written: 9 * least, left: 0) == .nothingWaited)
        #expect(pace.look(written: 9 * least + 3, left: 3) == .nothingWaited)
        #expect(pace.look(written: 9 * least + 3, left: 1) == .tooSlow)
    }

    /// A large receive buffer opens rarely, by a sixteenth of its size, and so a write ends rarely. The detector must
    /// not treat such a client as stopped. If the client itself was delayed, the test repeats with more time.
    @Test("a slow reader with a large buffer is left alone until it stops") func aSlowReaderWith() async throws {
        for seconds in [2, 8, 40] {
            let window = Duration.seconds(seconds)
            let gate = ConnectionGate(limit: 10)
            var settings = HTTPServer.Settings.patient
            settings.idleDeadline = window
            let server = try EchoServer(settings, gate: gate)
            let socket = try RawSocket(server.address, receiveBytes: 512 << 10)
            socket.send("GET /whole?bytes=200000000 HTTP/1.0\r\n\r\n")
            guard let isThere = try reads(socket, server, for: window * 3, held: window / 2) else { continue }
            #expect(isThere)
            try await eventually { try server.counters.open == 0 }
            #expect(!socket.endsInOrder(), "not all of it was read")
            #expect(gate.slow == 1)
            return
        }
        Issue.record("the reader was held up each time")
    }

    /// Reads 100 KB/s for `duration`. Returns true if the connection is still open, and nil if the client was
    /// delayed for longer than `most`.
    private func reads(
        _ socket: RawSocket,
        _ server: EchoServer,
        for duration: Duration,
        held most: Duration
    ) throws -> Bool? {
        let start = ContinuousClock.now
        var last = start
        while last - start < duration {
            var left = 10_000
            while left > 0 {
                let count = socket.receive(left).count
                if count == 0 { return false }
                left -= count
            }
            usleep(100_000)
            if ContinuousClock.now - last > most { return nil }
            last = .now
        }
        return try server.counters.open == 1
    }

    @Test("a close frame waits for a client that reads the data before it") func closeWaitsForReader() async throws {
        var settings = HTTPServer.Settings.patient
        settings.closeDeadline = .milliseconds(50)
        let server = try EchoServer(settings)
        let (socket, count) = try closing(server)
        let closedMs = try await closed(server)
        // This is twenty times the deadline.
        try await eventually { try now(server) > closedMs + 1_000 }
        var received = 0
        while received < count, case let part = socket.receive(1 << 20).count, part > 0 { received += part }
        #expect(received == count, "all of it, and the close frame")
    }

    @Test("a close frame does not wait for a client that reads nothing") func closeSkipsStalledReader() async throws {
        var settings = HTTPServer.Settings.patient
        (settings.closeDeadline, settings.idleDeadline) = (.milliseconds(50), .milliseconds(100))
        let gate = ConnectionGate(limit: 10)
        let server = try EchoServer(settings, gate: gate)
        let (socket, _) = try closing(server)
        try await eventually { try server.counters.webSockets == 0 && server.counters.open == 0 }
        #expect(!socket.endsInOrder(), "nor does the kernel keep for it what it does not read")
        #expect(gate.slow == 1)
    }

    /// Returns a socket that gets more bytes than the kernels buffer and then a close frame, and
    /// the number of all these bytes.
    private func closing(_ server: EchoServer) throws -> (RawSocket, Int) {
        let socket = try RawSocket(server.address)
        socket.send(WebSocketTests.handshake)
        _ = socket.receive(until: "\r\n\r\n")
        let bytes = 32 << 20
        socket.send(WebSocketFrame.encode(.binary, [UInt8](repeating: 1, count: bytes), mask: 3))
        socket.send(WebSocketFrame.encode(.text, Array("close me".utf8), mask: 1))
        return (socket, 10 + bytes + 4)
    }

    /// Returns the time at which the server had sent its close frame, on its loop's clock.
    private func closed(_ server: EchoServer) async throws -> UInt64 {
        try await eventually { try server.onHandler { $0.sockets.last?.isClosed } == true }
        return try now(server)
    }

    private func now(_ server: EchoServer) throws -> UInt64 { try server.onServer { $0.loop.now } }
}
