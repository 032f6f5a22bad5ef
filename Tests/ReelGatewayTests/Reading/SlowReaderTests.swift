import EventLogConformance
import Foundation
import NodeTestSupport
import ReelCore
import ReelLog
import ReelNet
import Synchronization
import TestSupport
import Testing

@testable import ReelGateway

/// Tests clients that cannot answer a ping because many bytes wait before it.
@Suite(.timeLimit(.minutes(15))) struct SlowReaderTests {
    /// Otherwise the gateway would cut off a client that catches up, because of bytes that it
    /// has itself read for that client.
    @Test("all that is read for a client at once is less than it may leave unread") func allThatIsRead() {
        let settings = GatewaySettings()
        // The concurrent reads of the log, and the read of one fetch, bring one frame each.
        let reads = (ReadAccount.operationsMax + 1) * settings.frameBytes
        #expect(settings.paceBytes + reads < 2 * settings.sendQueueBytes)
        #expect(settings.frameBytes <= settings.sendQueueBytes && settings.eventBytes < settings.frameBytes)
    }

    /// A client with small kernel buffers that answers no frame.
    private final class MuteClient: Sendable {
        private let client: RawSocket
        private let pace: Duration
        private let isHasty = Mutex(false)
        private let state = Mutex((count: 0, hasEnded: false, lag: Duration.zero))

        /// Connects to the gateway.
        ///
        /// - Parameter pace: The time from one read to the next.
        init(_ address: SocketAddress, pace: Duration) throws {
            self.pace = pace
            client = try RawSocket(address, receiveBytes: 32 << 10, segmentBytes: 500)
            #expect(
                client.send(
                    "GET /v1/socket HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
                        + "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
                        + "Sec-WebSocket-Protocol: reel.v1\r\n\r\n"
                )
            )
        }

        /// Sends a short text frame, masked with zeros.
        func say(_ text: String) {
            #expect(client.send([0x81, 0x80 | UInt8(text.utf8.count), 0, 0, 0, 0] + Array(text.utf8)))
        }

        /// Reads at its pace, on a thread of its own, until `hasten` is called.
        func read() {
            Thread.detachNewThread { [self] in
                var due = ContinuousClock.now
                while case let count = client.receive(8 << 10).count, count > 0 {
                    let now = ContinuousClock.now
                    due += pace
                    let (early, late) = (due - now, now - due)
                    state.withLock { state in
                        state.count += count
                        state.lag = max(state.lag, late)
                    }
                    if early > .zero, !isHasty.withLock({ $0 }) { usleep(UInt32(early / .microseconds(1))) }
                }
                state.withLock { $0.hasEnded = true }
            }
        }

        func hasten() { isHasty.withLock { $0 = true } }
        var count: Int { state.withLock { $0.count } }
        var hasEnded: Bool { state.withLock { $0.hasEnded } }
        /// The longest time that a read came after it was due: the client had nothing to read, or did not run.
        var lag: Duration { state.withLock { $0.lag } }
    }

    @Test("the gateway keeps a slow client that reads its backlog and cuts off a client that reads nothing")
    func keepsSlowReader() async throws {
        // A reader that falls behind its pace acts like a stopped one. The test then repeats with longer times.
        for factor in [1, 4, 16] {
            let (isWhole, lag) = try await read(slowerBy: factor)
            if isWhole { return }
            guard lag > .milliseconds(factor * pongMs / 2), factor < 16 else {
                Issue.record("it was cut off, though it was behind by \(lag) at most")
                return
            }
        }
    }

    private let pongMs = 1_500

    /// Runs a slow reader and a stopped one. Returns whether the slow one got everything, and its largest lag.
    private func read(slowerBy factor: Int) async throws -> (isWhole: Bool, lag: Duration) {
        let (count, textBytes) = (80, 100_000)
        let log = try MemoryLog(partitions: 1)
        let text = String(repeating: "x", count: textBytes)
        let site = Site(high: 1, low: 1)
        let records = (0..<count).map {
            LogAppend(key: Array("todo".utf8), value: Batches.value(site, Op($0), text, base: Seq($0) - 1))
        }
        log.append(records, to: 0) { _ in }
        var outcome = (isWhole: false, lag: Duration.zero)
        try await LiveGateway.with(
            log,
            {
                ($0.pingMs, $0.pongMs, $0.readMs) = (500, Int64(factor * pongMs), Int64(factor * pongMs))
                $0.warmRecords = 1
            }
        ) { live in
            let pace = Duration.milliseconds(20 * factor)
            let slow = try MuteClient(live.gateway.address, pace: pace)
            let stopped = try MuteClient(live.gateway.address, pace: pace)
            for client in [slow, stopped] {
                client.say(#"{"t":"hello","client":"mute"}"#)
                client.say(#"{"t":"fetch","stream":"todo","epoch":"\#(log.epoch)","ranges":[[0,\#(count - 1)]]}"#)
            }
            slow.read()
            try await eventually("both have asked") {
                try await live.metric("reel_gateway_frames_received_total") == 4
            }
            try await eventually("one is cut off") { try await live.metric("reel_gateway_connections") ?? 0 < 2 }
            slow.hasten()
            try await eventually("all of it, or an end") { slow.hasEnded || slow.count > count * textBytes }
            // A reader that has everything shows no further activity and may be cut off, so the result is taken now.
            outcome = (slow.count > count * textBytes, slow.lag)
            #expect(stopped.count == 0)
        }
        return outcome
    }
}
