import ReelCore

/// How many events each site may publish in a second. What was not used is saved for a second.
struct PublishRate {
    /// What an event takes of its site's time.
    private let eventUs: Int64
    /// Until when each site's time is taken; behind the present nothing is kept.
    private var takenUs: [Site: Int64] = [:]

    private static let savedUs: Int64 = 1_000_000

    /// So many events a second; 0: there is no limit.
    init(perSecond: Int) {
        eventUs = perSecond > 0 ? max(1, Self.savedUs / Int64(perSecond)) : 0
    }

    /// Takes so many events of a site, or says after how many milliseconds they may come. One who was quiet may publish
    /// anything at once, and waits longer then.
    mutating func take(_ count: Int, of site: Site, nowMs: Int64) -> Int64? {
        guard eventUs > 0 else { return nil }
        let nowUs = nowMs * 1_000
        let startUs = max(nowUs, takenUs[site] ?? nowUs)
        let endUs = startUs + Int64(count) * eventUs
        guard startUs == nowUs || endUs <= nowUs + Self.savedUs else {
            return max(1, min(startUs - nowUs, endUs - nowUs - Self.savedUs) / 1_000)
        }
        takenUs[site] = endUs
        return nil
    }

    /// What was taken was not used.
    mutating func giveBack(_ count: Int, of site: Site) {
        takenUs[site]? -= Int64(count) * eventUs
    }

    /// Forgets who was quiet for long enough.
    mutating func tick(nowMs: Int64) {
        guard !takenUs.isEmpty else { return }
        takenUs = takenUs.filter { $0.value > nowMs * 1_000 }
    }
}
