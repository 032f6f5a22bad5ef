import Foundation
import TestSupport
import Testing

@testable import ReelNet

/// Who reads slowly is let be, who does not read is not.
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

    /// A large buffer opens rarely, by a sixteenth of it, and a write is done rarely: neither may be taken for a reader
    /// that has stopped.
    /// Where the reader was held up itself, nothing is said of the server: it tries again, with more time.
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

    /// Reads 100 KB a second for so long; whether the connection is still there then, or nil where the reader was held
    /// up for too long.
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
        // Long enough for twenty such deadlines.
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

    /// A socket that is sent more than the kernels hold, and then a close frame; and how many bytes these are.
    private func closing(_ server: EchoServer) throws -> (RawSocket, Int) {
        let socket = try RawSocket(server.address)
        socket.send(WebSocketTests.handshake)
        _ = socket.receive(until: "\r\n\r\n")
        let bytes = 32 << 20
        socket.send(WebSocketFrame.encode(.binary, [UInt8](repeating: 1, count: bytes), mask: 3))
        socket.send(WebSocketFrame.encode(.text, Array("close me".utf8), mask: 1))
        return (socket, 10 + bytes + 4)
    }

    /// When the server had sent its close frame, on its loop's clock.
    private func closed(_ server: EchoServer) async throws -> UInt64 {
        try await eventually { try server.onHandler { $0.sockets.last?.isClosed } == true }
        return try now(server)
    }

    private func now(_ server: EchoServer) throws -> UInt64 { try server.onServer { $0.loop.now } }
}
