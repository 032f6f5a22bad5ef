import ReelCore

/// How many events each payer may publish in a second. What was not used is saved for a second.
struct PublishRate {
    /// The client and the stream that events are charged to. Not the site: every reader of the stream can name it.
    struct Payer: Hashable {
        /// The client that publishes.
        enum Client: Hashable {
            /// The subject of a token.
            case subject(String)
            /// On a node without keys: the client's address, for IPv6 the first 64 bits.
            case address(UInt64)
        }

        var client: Client
        var stream: StreamName
    }

    /// The microseconds that each event costs its payer.
    private let eventUs: Int64
    /// The moment until which each payer's time is used up; entries in the past are removed.
    private var takenUs: [Payer: Int64] = [:]

    private static let savedUs: Int64 = 1_000_000

    /// So many events a second; 0: there is no limit.
    init(perSecond: Int) {
        eventUs = perSecond > 0 ? max(1, Self.savedUs / Int64(perSecond)) : 0
    }

    /// Takes so many events of a payer, or says after how many milliseconds they may come. One who was quiet may
    /// publish anything at once, and waits longer then.
    mutating func take(_ count: Int, of payer: Payer, nowMs: Int64) -> Int64? {
        guard eventUs > 0 else { return nil }
        let nowUs = nowMs * 1_000
        let startUs = max(nowUs, takenUs[payer] ?? nowUs)
        let endUs = startUs + Int64(count) * eventUs
        guard startUs == nowUs || endUs <= nowUs + Self.savedUs else {
            return max(1, min(startUs - nowUs, endUs - nowUs - Self.savedUs) / 1_000)
        }
        takenUs[payer] = endUs
        return nil
    }

    /// What was taken was not used.
    mutating func giveBack(_ count: Int, of payer: Payer) {
        takenUs[payer]? -= Int64(count) * eventUs
    }

    /// Forgets who was quiet for long enough.
    mutating func tick(nowMs: Int64) {
        guard !takenUs.isEmpty else { return }
        takenUs = takenUs.filter { $0.value > nowMs * 1_000 }
    }
}
