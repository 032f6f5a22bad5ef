import ReelCore
import ReelNode

extension GatewaySettings {
    /// True if a limit on publishes holds for the payer.
    func limitsPublishes(of payer: Payer) -> Bool {
        publishesPerSecond.holds(for: payer) || publishBytesPerSecond.holds(for: payer)
            || newSitesPerHour.holds(for: payer)
    }
}

/// The rate limits of one payer in one stream: events and bytes per second, new sites per hour.
struct PublishLimits {
    /// The payer and the stream that events are charged to.
    struct Key: Hashable {
        var payer: Payer
        var stream: StreamName
    }

    /// The units that one publish takes.
    struct Charge {
        var events: Int
        var bytes: Int
        /// Sites that begin with it. A stream takes only so many in all.
        var newSites: Int

        init(_ offers: [PublishLedger.Offer]) {
            events = offers.count
            bytes = offers.reduce(0) { $0 + $1.value.count }
            newSites = offers.count { $0.op == 0 && !$0.site.isOneRequest }
        }
    }

    private let settings: GatewaySettings
    private var events: RateLimit<Key>
    private var bytes: RateLimit<Key>
    private var newSites: RateLimit<Key>

    init(_ settings: GatewaySettings) {
        self.settings = settings
        events = RateLimit(settings.publishesPerSecond.most)
        bytes = RateLimit(settings.publishBytesPerSecond.most)
        newSites = RateLimit(settings.newSitesPerHour.most, inMs: 3_600_000)
    }

    /// Charges all units or none. Returns the limit that refused the publish, and the error for its client.
    mutating func take(_ charge: Charge, of key: Key, nowMs: Int64) -> (limit: LimitMeters.Limit, error: ReelError)? {
        let words = key.payer.words
        func refusal(_ most: Int, _ what: String, _ waitMs: Int64) -> ReelError {
            ReelError(
                .rateLimited,
                "found more than \(most) \(what) of one \(words.who) in one stream, expected fewer of this"
                    + " \(words.whose)",
                retryMs: waitMs
            )
        }
        if settings.publishesPerSecond.holds(for: key.payer),
            let waitMs = events.take(charge.events, of: key, nowMs: nowMs)
        {
            return (.publishes, refusal(settings.publishesPerSecond.most, "events a second", waitMs))
        }
        if settings.publishBytesPerSecond.holds(for: key.payer),
            let waitMs = bytes.take(charge.bytes, of: key, nowMs: nowMs)
        {
            events.giveBack(charge.events, of: key)
            return (.publishBytes, refusal(settings.publishBytesPerSecond.most, "bytes of events a second", waitMs))
        }
        if settings.newSitesPerHour.holds(for: key.payer),
            let waitMs = newSites.take(charge.newSites, of: key, nowMs: nowMs)
        {
            events.giveBack(charge.events, of: key)
            bytes.giveBack(charge.bytes, of: key)
            return (.newSites, refusal(settings.newSitesPerHour.most, "new sites an hour", waitMs))
        }
        return nil
    }

    /// Gives a charge back whose events did not go to the log.
    mutating func giveBack(_ charge: Charge, of key: Key) {
        events.giveBack(charge.events, of: key)
        bytes.giveBack(charge.bytes, of: key)
        newSites.giveBack(charge.newSites, of: key)
    }

    /// Removes the payers whose buckets are full.
    mutating func tick(nowMs: Int64) {
        events.tick(nowMs: nowMs)
        bytes.tick(nowMs: nowMs)
        newSites.tick(nowMs: nowMs)
    }
}
