import ReelNode

/// One loop's part of the gauges that all loops share.
struct LoopGauges {
    /// The numbers of a loop.
    struct Counts {
        var connections = 0
        var subscriptions = 0
        /// The HTTP requests that wait for new events.
        var httpSubscribers = 0
        var unsentBytes = 0
        /// The connections with many unsent bytes.
        var slowConnections = 0
    }

    private let meters: GatewayMeters
    private(set) var counts = Counts()

    init(_ meters: GatewayMeters) {
        self.meters = meters
    }

    /// Replaces the loop's part of each gauge.
    mutating func show(_ now: Counts) {
        meters.connections.add(now.connections - counts.connections)
        meters.subscriptions.add(now.subscriptions - counts.subscriptions)
        meters.streamWaiters.add(now.httpSubscribers - counts.httpSubscribers)
        meters.sendQueueBytes.add(now.unsentBytes - counts.unsentBytes)
        meters.slowConnections.add(now.slowConnections - counts.slowConnections)
        counts = now
    }
}
