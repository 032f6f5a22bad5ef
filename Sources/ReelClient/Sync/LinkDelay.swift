/// The time for which the answers of a node wait behind what the node has sent before.
///
/// A node answers a ping after all that it has queued for the connection. If data keeps arriving and the answer does
/// not, the connection is slower than the data. A connection whose pings were never answered is not judged.
struct LinkDelay: Sendable {
    /// The consequence of data that has arrived.
    enum Finding: Sendable, Equatable {
        /// The connection keeps up, or nothing is known yet.
        case none
        /// A ping is due.
        case ping
        /// The answer to a ping is late while data arrives.
        case late
    }

    /// The number of bytes after an answer from which the next ping is due.
    static let pingBytes = 4 << 10
    /// The time after which an answer is late.
    static let lateMs: Int64 = 3_000
    /// The time after which a connection that delivers only what is no longer needed is given up.
    static let uselessMs: Int64 = 9_000
    /// A pause in the data after which nothing is queued. A node does not answer pings while its queue is long.
    static let quietMs: Int64 = 1_000
    /// The shortest time between two findings that are not `none`.
    private static let findingMs: Int64 = 500

    /// The number of pings.
    private(set) var pings = 0
    private var isKnown = false
    private var pingedMs: Int64?
    private var bytes = 0
    private var heardMs: Int64 = 0
    private var foundMs: Int64 = 0

    /// Called when a ping is sent.
    mutating func pinged(nowMs: Int64) {
        pings += 1
        (pingedMs, heardMs, bytes) = (nowMs, nowMs, 0)
    }

    /// Called when a ping is answered.
    mutating func answered() {
        isKnown = true
        (pingedMs, bytes) = (nil, 0)
    }

    /// Called when a part of a long frame has arrived.
    mutating func heard(nowMs: Int64) { heardMs = nowMs }

    /// Called when a frame has arrived.
    mutating func received(bytes count: Int, nowMs: Int64) -> Finding {
        guard isKnown else { return .none }
        if nowMs - heardMs > Self.quietMs { (pingedMs, bytes) = (nil, 0) }
        heardMs = nowMs
        bytes += count
        guard nowMs - foundMs >= Self.findingMs else { return .none }
        if pingedMs == nil, bytes < Self.pingBytes { return .none }
        if pingedMs != nil, waitedMs(nowMs: nowMs) < Self.lateMs { return .none }
        foundMs = nowMs
        return pingedMs == nil ? .ping : .late
    }

    /// The time for which the answer to a ping has been awaited, in milliseconds; 0: none is awaited.
    func waitedMs(nowMs: Int64) -> Int64 { isKnown ? pingedMs.map { nowMs - $0 } ?? 0 : 0 }
}
