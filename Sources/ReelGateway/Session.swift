import ReelCore
import ReelNet

/// What one connection may do and when: hello first and once, signs of life, messages that end, reading what waits, not
/// too many errors. It decides and does nothing itself.
struct Session {
    /// What is to be done about a frame.
    enum Action: Equatable {
        /// Say welcome, once it is known who it is.
        case welcome
        /// Do what the frame asks.
        case handle(ClientFrame)
        /// Say this error; the connection stays.
        case refuse(ReelError)
        /// Say this error, then close.
        case refuseAndClose(ReelError, code: UInt16)
        /// The connection is closing: nothing.
        case ignore
    }

    /// What is to be done as time goes by.
    enum Tick: Equatable {
        case nothing
        case ping
        case close(ReelError, code: UInt16)
        /// Its moment to leave has come.
        case leave
    }

    /// Whether it is time to look how the client reads.
    enum Look {
        case no
        /// The first look only says from where on is counted.
        case first
        case next
    }

    private enum Phase {
        case fresh(helloByMs: Int64)
        case open
        /// Its moment to leave has come; what was taken from it is still to be answered.
        case leaving
        case closing
    }

    private enum Pulse {
        case quiet(pingAtMs: Int64)
        case pinged(times: Int, pongByMs: Int64)
    }

    /// Of the settings no more than it needs: there are as many sessions as connections. The fields are in the order
    /// that leaves no room between them.
    private let (helloMs, pingMs, pongMs, readMs, messageMs): (Int32, Int32, Int32, Int32, Int32)
    private let errorsMax: Int32
    private(set) var errors: Int32 = 0
    private var phase: Phase
    /// Why it is closing.
    private(set) var end = SocketEnd.client
    private var pulse: Pulse
    /// When it is looked at again how the client reads; 0: nothing waits.
    private var lookAtMs: Int64 = 0
    /// When it was seen that a message has begun; 0: none has.
    private var partFromMs: Int64 = 0
    private var leaveAtMs: Int64?

    init(_ settings: GatewaySettings, nowMs: Int64) {
        helloMs = Int32(clamping: settings.helloMs)
        pingMs = Int32(clamping: settings.pingMs)
        pongMs = Int32(clamping: settings.pongMs)
        readMs = Int32(clamping: settings.readMs)
        messageMs = Int32(clamping: settings.messageMs)
        errorsMax = Int32(clamping: settings.errors)
        phase = .fresh(helloByMs: nowMs + settings.helloMs)
        pulse = .quiet(pingAtMs: nowMs + settings.pingMs)
    }

    var isOpen: Bool { if case .open = phase { true } else { false } }

    /// A frame came, or what should have been one.
    mutating func received(_ frame: Result<ClientFrame, FrameError>) -> Action {
        partFromMs = 0
        switch (phase, frame) {
        case (.leaving, _), (.closing, _): return .ignore
        case (.fresh, .success(let frame)):
            guard case .hello = frame.body else {
                return close(
                    ReelError(.badFrame, "found another frame before hello, expected hello first"),
                    1008,
                    .hello
                )
            }
            phase = .open
            return .welcome
        case (.fresh, .failure(let failure)):
            return close(failure.error, 1008, .hello)
        case (.open, .success(let frame)):
            if case .hello = frame.body {
                return close(ReelError(.badFrame, "found a second hello, expected one"), 1008, .hello)
            }
            return .handle(frame)
        case (.open, .failure(let failure)):
            return refused(failure.error)
        }
    }

    /// An error is to be said: does the connection stay? It ends after too many that its client has caused.
    mutating func refused(_ error: ReelError) -> Action {
        if case .closing = phase { return .ignore }
        guard error.code.blamesTheClient else { return .refuse(error) }
        errors += 1
        return errors >= errorsMax ? close(error, 1008, .errors) : .refuse(error)
    }

    /// The client is not let in, or not any longer: its token is not valid, or it has met a limit and may come again.
    mutating func refusedEntry(_ error: ReelError) -> Action {
        if case .closing = phase { return .ignore }
        guard error.code.entry.retry == .later else {
            return close(error, ErrorCode.unauthorized.close ?? 1008, .token)
        }
        return close(error, ErrorCode.overloaded.close ?? 1013, .limit)
    }

    private mutating func close(_ error: ReelError, _ code: UInt16, _ end: SocketEnd) -> Action {
        ends(end)
        return .refuseAndClose(error, code: code)
    }

    /// It is closing, for this reason.
    mutating func ends(_ end: SocketEnd) {
        phase = .closing
        self.end = end
    }

    /// A message came, or some of one, or the answer to a ping, or the client has read of what waits for it: it is
    /// alive. Before it has read all that it cannot answer a ping.
    mutating func heard(nowMs: Int64) {
        if case .pinged = pulse { pulse = .quiet(pingAtMs: nowMs + Int64(pingMs)) }
    }

    /// The client was told to leave within so long.
    mutating func askToLeave(atMs: Int64) {
        leaveAtMs = atMs
    }

    /// Whether it is to be looked at how the client reads: from time to time while bytes wait for it, or while it is to
    /// answer pings, which may stand behind others.
    mutating func look(nowMs: Int64, bytesWait: Bool) -> Look {
        guard bytesWait || isOverdue(nowMs) else {
            lookAtMs = 0
            return .no
        }
        if lookAtMs > nowMs { return .no }
        defer { lookAtMs = nowMs + Int64(readMs) }
        return lookAtMs == 0 ? .first : .next
    }

    private func isOverdue(_ nowMs: Int64) -> Bool {
        if case .pinged(2, let pongByMs) = pulse { nowMs >= pongByMs } else { false }
    }

    /// How long the answer to a ping may take longer behind so many bytes, which may wait in kernels and proxies on the
    /// way: as long as looks can tell that they are read, and then as long as 8 kB a second take.
    private func patienceMs(_ bytes: Int) -> Int64 {
        bytes > SlowReaderDetector.bytesMin ? Int64(readMs) + Int64(min(bytes, Self.bufferedBytesMax) / 8) : 0
    }

    /// More is not kept on the way.
    private static let bufferedBytesMax = 8 << 20

    /// Looks at the clock. `awaitsAnswer`: events were taken from this connection and are not answered yet; it does not
    /// leave before they are. `unansweredBytes`: so many were sent since the last ping that was answered. `partBytes`:
    /// so much has come of a message that is not whole.
    mutating func tick(
        nowMs: Int64,
        awaitsAnswer: Bool = false,
        unansweredBytes: Int = 0,
        partBytes: Int? = nil
    ) -> Tick {
        if case .closing = phase { return .nothing }
        if let leaveAtMs, nowMs >= leaveAtMs {
            if awaitsAnswer {
                phase = .leaving
                return .nothing
            }
            ends(.leave)
            return .leave
        }
        if case .fresh(let helloByMs) = phase, nowMs >= helloByMs {
            ends(.hello)
            return .close(ReelError(.badFrame, "found no hello within \(helloMs) ms"), code: 1008)
        }
        if let partBytes {
            if partFromMs == 0 { partFromMs = nowMs }
            // A kilobyte a second is enough.
            guard nowMs < partFromMs + Int64(messageMs) + Int64(partBytes) else {
                ends(.unfinished)
                let text = "found \(partBytes) bytes of a message in \(nowMs - partFromMs) ms, expected it to be whole"
                return .close(ReelError(.limit, text), code: 1008)
            }
            heard(nowMs: nowMs)
        } else {
            partFromMs = 0
        }
        switch pulse {
        case .quiet(let pingAtMs) where nowMs >= pingAtMs:
            pulse = .pinged(times: 1, pongByMs: nowMs + Int64(pongMs))
            return .ping
        case .pinged(let times, let pongByMs) where nowMs >= pongByMs:
            if times < 2 {
                pulse = .pinged(times: times + 1, pongByMs: nowMs + Int64(pongMs))
                return .ping
            }
            guard nowMs >= pongByMs + patienceMs(unansweredBytes) else { return .nothing }
            ends(.silent)
            return .close(ReelError(.limit, "found no sign of life after two pings"), code: 1008)
        default: return .nothing
        }
    }
}

extension ErrorCode {
    /// Whether who asked has done something wrong: not where the log is another, was trimmed or has lost something, or
    /// the node is in trouble.
    fileprivate var blamesTheClient: Bool {
        switch self {
        case .epochChanged, .truncated, .aheadOfLog, .diverged: false
        default: status != 429 && status < 500
        }
    }
}
