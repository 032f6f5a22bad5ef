import ReelCore
import ReelNode

extension GatewaySettings {
    /// True if a limit on publishes holds for the payer.
    func limitsPublishes(of payer: Payer) -> Bool {
        publishesPerSecond.holds(for: payer) || publishBytesPerSecond.holds(for: payer)
            || newSitesPerHour.holds(for: payer)
    }
}

/// The rate limits of publishes: events and bytes per second, new sites per hour. Each of them holds for a payer in one
/// stream. In all streams together the payer may use `streamsMax` times as much, however many streams its token
/// permits.
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
        /// The number of sites that begin with the publish. A stream accepts only a limited number of them.
        var newSites: Int

        init(_ offers: [PublishLedger.Offer]) {
            events = offers.count
            bytes = offers.reduce(0) { $0 + $1.value.count }
            newSites = offers.count { $0.op == 0 && !$0.site.isOneRequest }
        }
    }

    /// The limit that refused a publish, and the error for its client.
    typealias Refusal = (limit: LimitMeters.Limit, error: ReelError)

    /// A payer may use the limits of this many streams at the same time.
    static let streamsMax = 4

    private var events: Rate
    private var bytes: Rate
    private var newSites: Rate

    init(_ settings: GatewaySettings) {
        events = Rate(settings.publishesPerSecond, "events a second", (.publishes, .publishesOfPayer))
        bytes = Rate(
            settings.publishBytesPerSecond,
            "bytes of events a second",
            (.publishBytes, .publishBytesOfPayer)
        )
        newSites = Rate(
            settings.newSitesPerHour,
            inMs: 3_600_000,
            "new sites an hour",
            (.newSites, .newSitesOfPayer)
        )
    }

    /// Charges all units or none. Returns nil if it charged them.
    mutating func take(_ charge: Charge, of key: Key, nowMs: Int64) -> Refusal? {
        if let refusal = events.take(charge.events, of: key, nowMs: nowMs) { return refusal }
        if let refusal = bytes.take(charge.bytes, of: key, nowMs: nowMs) {
            events.giveBack(charge.events, of: key)
            return refusal
        }
        if let refusal = newSites.take(charge.newSites, of: key, nowMs: nowMs) {
            events.giveBack(charge.events, of: key)
            bytes.giveBack(charge.bytes, of: key)
            return refusal
        }
        return nil
    }

    /// Gives the units of a charge back, because its events did not go to the log.
    mutating func giveBack(_ charge: Charge, of key: Key) {
        events.giveBack(charge.events, of: key)
        bytes.giveBack(charge.bytes, of: key)
        newSites.giveBack(charge.newSites, of: key)
    }

    /// Removes the payers with full buckets.
    mutating func tick(nowMs: Int64) {
        events.tick(nowMs: nowMs)
        bytes.tick(nowMs: nowMs)
        newSites.tick(nowMs: nowMs)
    }
}

/// The rate of one kind of unit, in each stream and in all streams together.
private struct Rate {
    private let limit: PayerLimit
    /// The unit and its period, in words.
    private let units: String
    private let names: (inStream: LimitMeters.Limit, inAll: LimitMeters.Limit)
    private var inStream: RateLimit<PublishLimits.Key>
    private var inAll: RateLimit<Payer>

    init(
        _ limit: PayerLimit,
        inMs ms: Int64 = 1_000,
        _ units: String,
        _ names: (inStream: LimitMeters.Limit, inAll: LimitMeters.Limit)
    ) {
        self.limit = limit
        self.units = units
        self.names = names
        inStream = RateLimit(limit.most, inMs: ms)
        inAll = RateLimit(PublishLimits.streamsMax * limit.most, inMs: ms)
    }

    mutating func take(_ count: Int, of key: PublishLimits.Key, nowMs: Int64) -> PublishLimits.Refusal? {
        guard limit.holds(for: key.payer) else { return nil }
        if let waitMs = inStream.take(count, of: key, nowMs: nowMs) {
            return (names.inStream, refusal(limit.most, "one stream", key.payer, waitMs))
        }
        if let waitMs = inAll.take(count, of: key.payer, nowMs: nowMs) {
            inStream.giveBack(count, of: key)
            return (names.inAll, refusal(PublishLimits.streamsMax * limit.most, "all streams", key.payer, waitMs))
        }
        return nil
    }

    private func refusal(_ most: Int, _ place: String, _ payer: Payer, _ waitMs: Int64) -> ReelError {
        let (who, whose) = payer.words
        return ReelError(
            .rateLimited,
            "found more than \(most) \(units) of one \(who) in \(place), expected fewer of this \(whose)",
            retryMs: waitMs
        )
    }

    mutating func giveBack(_ count: Int, of key: PublishLimits.Key) {
        inStream.giveBack(count, of: key)
        inAll.giveBack(count, of: key.payer)
    }

    mutating func tick(nowMs: Int64) {
        inStream.tick(nowMs: nowMs)
        inAll.tick(nowMs: nowMs)
    }
}
