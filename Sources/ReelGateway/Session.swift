import ReelCore

/// What one connection may do and when: hello first and once, signs of life, not too many errors. It decides and
/// does nothing itself.
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

    /// Of the settings no more than it needs: there are as many sessions as connections.
    private let (helloMs, pingMs, pongMs): (Int64, Int64, Int64)
    private let errorsMax: Int
    private var phase: Phase
    private var pulse: Pulse
    private var leaveAtMs: Int64?
    private(set) var errors = 0

    init(_ settings: GatewaySettings, nowMs: Int64) {
        (helloMs, pingMs, pongMs) = (settings.helloMs, settings.pingMs, settings.pongMs)
        errorsMax = settings.errors
        phase = .fresh(helloByMs: nowMs + settings.helloMs)
        pulse = .quiet(pingAtMs: nowMs + settings.pingMs)
    }

    var isOpen: Bool { if case .open = phase { true } else { false } }

    /// A frame came, or what should have been one.
    mutating func received(_ frame: Result<ClientFrame, FrameError>) -> Action {
        switch (phase, frame) {
        case (.leaving, _), (.closing, _): return .ignore
        case (.fresh, .success(let frame)):
            guard case .hello = frame.body else {
                return close(ReelError(.badFrame, "found another frame before hello, expected hello first"), 1008)
            }
            phase = .open
            return .welcome
        case (.fresh, .failure(let failure)):
            return close(failure.error, 1008)
        case (.open, .success(let frame)):
            if case .hello = frame.body {
                return close(ReelError(.badFrame, "found a second hello, expected one"), 1008)
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
        return errors >= errorsMax ? close(error, 1008) : .refuse(error)
    }

    /// Nobody knows (any more) who it is.
    mutating func unauthorized(_ error: ReelError) -> Action {
        if case .closing = phase { return .ignore }
        return close(error, ErrorCode.unauthorized.close ?? 1008)
    }

    private mutating func close(_ error: ReelError, _ code: UInt16) -> Action {
        phase = .closing
        return .refuseAndClose(error, code: code)
    }

    /// Bytes came, a pong or not, or the client has read of what waits for it: it is alive. Before it has read all that
    /// it cannot answer a ping.
    mutating func heard(nowMs: Int64) {
        if case .pinged = pulse { pulse = .quiet(pingAtMs: nowMs + pingMs) }
    }

    /// The client was told to leave within so long.
    mutating func sendAway(atMs: Int64) {
        leaveAtMs = atMs
    }

    /// Looks at the clock. `awaitsAnswer`: events were taken from this connection and are not answered yet; it does not
    /// leave before they are.
    mutating func tick(nowMs: Int64, awaitsAnswer: Bool = false) -> Tick {
        if case .closing = phase { return .nothing }
        if let leaveAtMs, nowMs >= leaveAtMs {
            phase = awaitsAnswer ? .leaving : .closing
            return awaitsAnswer ? .nothing : .leave
        }
        if case .fresh(let helloByMs) = phase, nowMs >= helloByMs {
            phase = .closing
            return .close(ReelError(.badFrame, "found no hello within \(helloMs) ms"), code: 1008)
        }
        switch pulse {
        case .quiet(let pingAtMs) where nowMs >= pingAtMs:
            pulse = .pinged(times: 1, pongByMs: nowMs + pongMs)
            return .ping
        case .pinged(let times, let pongByMs) where nowMs >= pongByMs:
            guard times < 2 else {
                phase = .closing
                return .close(ReelError(.limit, "found no sign of life after two pings"), code: 1008)
            }
            pulse = .pinged(times: times + 1, pongByMs: nowMs + pongMs)
            return .ping
        default: return .nothing
        }
    }
}

extension ErrorCode {
    /// Whether who asked has done something wrong: not where the log is another or was trimmed, or the node is in
    /// trouble.
    fileprivate var blamesTheClient: Bool {
        switch self {
        case .epochChanged, .truncated, .diverged: false
        default: status != 429 && status < 500
        }
    }
}
