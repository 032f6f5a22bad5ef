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
        add(now.connections - counts.connections, to: meters.connections)
        add(now.subscriptions - counts.subscriptions, to: meters.subscriptions)
        add(now.httpSubscribers - counts.httpSubscribers, to: meters.streamWaiters)
        add(now.unsentBytes - counts.unsentBytes, to: meters.sendQueueBytes)
        add(now.slowConnections - counts.slowConnections, to: meters.slowConnections)
        counts = now
    }

    /// Adds a change to a gauge. Without a change it does not touch the gauge, which other loops write, too.
    private func add(_ change: Int, to gauge: Gauge) {
        if change != 0 { gauge.add(change) }
    }
}
