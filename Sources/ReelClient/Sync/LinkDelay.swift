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

    /// The number of bytes after a ping from which the next one is due.
    private static let pingBytes = 4 << 10
    /// The shortest time between two pings. A node with a long queue drops some of them.
    private static let pingMs: Int64 = 1_000
    /// The time after which an answer is late.
    private static let lateMs: Int64 = 3_000
    /// The time after which a connection that delivers only what is no longer needed is given up.
    static let uselessMs: Int64 = 9_000
    /// A pause in the data after which nothing is queued.
    private static let quietMs: Int64 = 1_000
    /// The shortest time between two findings of a late answer.
    private static let findingMs: Int64 = 500
    /// The maximum number of pings without an answer.
    private static let awaitedMax = 16

    private var isKnown = false
    /// The pings without an answer, in order.
    private var awaited: [(number: Int, ms: Int64)] = []
    private var number = 0
    private var pingedMs: Int64 = 0
    private var bytes = 0
    private var heardMs: Int64 = 0
    private var foundMs: Int64 = 0

    /// Called when a ping is sent. Returns its number.
    mutating func pinged(nowMs: Int64) -> Int {
        heard(nowMs: nowMs)
        number += 1
        (pingedMs, bytes) = (nowMs, 0)
        if awaited.count < Self.awaitedMax { awaited.append((number, nowMs)) }
        return number
    }

    /// Called when a ping is answered. Earlier ones are not answered any more, because answers keep their order.
    mutating func answered(_ number: Int) {
        isKnown = true
        awaited.removeAll { $0.number <= number }
    }

    /// Called when a part of a long frame has arrived.
    mutating func heard(nowMs: Int64) {
        if nowMs - heardMs > Self.quietMs { awaited = [] }
        heardMs = nowMs
    }

    /// Called when a frame has arrived.
    mutating func received(bytes count: Int, nowMs: Int64) -> Finding {
        guard isKnown else { return .none }
        heard(nowMs: nowMs)
        bytes += count
        if bytes >= Self.pingBytes, nowMs - pingedMs >= Self.pingMs { return .ping }
        guard waitedMs(nowMs: nowMs) >= Self.lateMs, nowMs - foundMs >= Self.findingMs else { return .none }
        foundMs = nowMs
        return .late
    }

    /// The time for which the answer to a ping has been awaited, in milliseconds; 0: none is awaited.
    func waitedMs(nowMs: Int64) -> Int64 { isKnown ? awaited.first.map { nowMs - $0.ms } ?? 0 : 0 }
}
