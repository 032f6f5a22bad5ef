import ReelCore
import ReelNet

/// The state machine of one connection: `hello` first and once, pings, incomplete messages, reading pace, and a limit
/// of errors. It only decides; `SocketClient` acts.
struct Session {
    /// The reaction to a frame.
    enum Action: Equatable {
        /// Send `welcome` once the client's token is accepted.
        case welcome
        /// Handle the request in the frame.
        case handle(ClientFrame)
        /// Send this error; the connection stays open.
        case refuse(ReelError)
        /// Send this error, then close.
        case refuseAndClose(ReelError, code: UInt16)
        /// Do nothing, because the connection is closing.
        case ignore
    }

    /// The action that is due by the clock.
    enum Tick: Equatable {
        case nothing
        case ping
        case close(ReelError, code: UInt16)
        /// Close, because the time to leave has come.
        case leave
    }

    /// The decision about a check of the client's reading pace.
    enum Look {
        case no
        /// The first check only sets the point from which bytes are counted.
        case first
        case next
    }

    private enum Phase {
        case fresh(helloByMs: Int64)
        case open
        /// The time to leave has come; accepted events are still to be answered.
        case leaving
        case closing
    }

    private enum Pulse {
        case quiet(pingAtMs: Int64)
        case pinged(times: Int, pongByMs: Int64)
    }

    /// The settings that a session needs, as 32-bit values, because there are as many sessions as connections. The
    /// order of the fields avoids padding.
    private let (helloMs, pingMs, pongMs, readMs, messageMs): (Int32, Int32, Int32, Int32, Int32)
    private let errorsMax: Int32
    private(set) var errors: Int32 = 0
    private var phase: Phase
    /// The reason why the connection closes.
    private(set) var end = SocketEnd.client
    private var pulse: Pulse
    /// When the client's reading pace is checked next; 0: no bytes wait.
    private var lookAtMs: Int64 = 0
    /// When the start of an incomplete message was noticed; 0: there is none.
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

    /// Called with a frame, or with the error of its parser. Returns the reaction.
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

    /// Returns the action for an error that is to be sent. After too many errors that its client has caused, the
    /// connection closes.
    mutating func refused(_ error: ReelError) -> Action {
        if case .closing = phase { return .ignore }
        guard error.code.blamesTheClient else { return .refuse(error) }
        errors += 1
        return errors >= errorsMax ? close(error, 1008, .errors) : .refuse(error)
    }

    /// Returns the action for a client that is not let in, or not any longer. Its token is not valid, or it has met a
    /// limit and may return later.
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

    /// Records that the connection closes, and why.
    mutating func ends(_ end: SocketEnd) {
        phase = .closing
        self.end = end
    }

    /// Called at a sign of life: a message or a part of one, the answer to a ping, or waiting bytes that the client has
    /// read. A client cannot answer a ping before it has read all bytes before the ping.
    mutating func heard(nowMs: Int64) {
        if case .pinged = pulse { pulse = .quiet(pingAtMs: nowMs + Int64(pingMs)) }
    }

    /// Records that the client was asked to leave. The connection closes at `atMs`.
    mutating func askToLeave(atMs: Int64) {
        leaveAtMs = atMs
    }

    /// Decides if the client's reading pace is to be checked now. Checks run while bytes wait for the client, or while
    /// it owes the answer to a ping, which may be queued after other bytes.
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

    /// Returns the additional time in milliseconds for the answer to a ping that `bytes` unanswered bytes precede.
    /// These bytes may wait in kernels and proxies on the way. The time covers one reading check, and then the bytes at
    /// 8 kB a second.
    private func patienceMs(_ bytes: Int) -> Int64 {
        bytes > SlowReaderDetector.bytesMin ? Int64(readMs) + Int64(min(bytes, Self.bufferedBytesMax) / 8) : 0
    }

    /// The maximum number of bytes that are assumed to wait on the way.
    private static let bufferedBytesMax = 8 << 20

    /// Returns the action that is due.
    ///
    /// - Parameters:
    ///   - nowMs: The time in milliseconds.
    ///   - awaitsAnswer: True if accepted events of this connection are not answered yet; it does not leave before they
    ///     are.
    ///   - unansweredBytes: The bytes that were sent since the last ping that was answered.
    ///   - partBytes: The bytes that have arrived of an incomplete message; nil: there is none.
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
    /// True if the client has caused the error. False if the log is another one, was trimmed or has lost something, or
    /// if the node is in trouble.
    fileprivate var blamesTheClient: Bool {
        switch self {
        case .epochChanged, .truncated, .aheadOfLog, .diverged: false
        default: status != 429 && status < 500
        }
    }
}
