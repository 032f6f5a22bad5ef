import ReelCore
import ReelNode
import Synchronization

/// The limits of what one client may use of a gateway, counted on all loops. From any thread.
final class ClientLimits: Sendable {
    /// The rates at which each payer publishes.
    private let publishes: Mutex<PublishLimits>
    /// The subscriptions of each payer.
    let payerSubscriptions: PayerShares
    /// The sockets, event streams and long polls of each token subject.
    private let subjectConnections: PayerShares
    private let meters: LimitMeters

    init(_ settings: GatewaySettings, _ meters: LimitMeters) {
        self.meters = meters
        publishes = Mutex(PublishLimits(settings))
        payerSubscriptions = PayerShares(settings.payerSubscriptions)
        subjectConnections = PayerShares(
            PayerLimit(settings.subjectConnections ?? settings.node.standardShareOfConnections)
        )
    }

    /// Counts a socket, an event stream or a long poll for the subject of its token until the unit is released. Returns
    /// nil for a client without a token: the node's gate counts its connections by address. Throws `overloaded` if the
    /// subject has reached its limit.
    func countConnection(of access: Access) throws(ReelError) -> PayerShares.Unit? {
        guard let subject = access.subject else { return nil }
        if let unit = subjectConnections.unit(for: .subject(subject)) { return unit }
        meters.met(.connectionsPerSubject)
        throw ReelError(
            .overloaded,
            "found \(subjectConnections.limit.most) open connections of this token's subject, expected fewer",
            retryMs: 5_000
        )
    }

    /// Charges events to a payer. Returns the reason for a refusal; nil: they are charged.
    func take(_ charge: PublishLimits.Charge, of key: PublishLimits.Key, nowMs: Int64) -> PublishLimits.Refusal? {
        publishes.withLock { $0.take(charge, of: key, nowMs: nowMs) }
    }

    /// Gives a payer a charge back, because its events were not accepted.
    func giveBack(_ charge: PublishLimits.Charge, of key: PublishLimits.Key) {
        publishes.withLock { $0.giveBack(charge, of: key) }
    }

    /// Forgets payers that have not published for long. Called about once a second.
    func tick(nowMs: Int64) {
        publishes.withLock { $0.tick(nowMs: nowMs) }
    }
}
