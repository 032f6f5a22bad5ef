import ReelCore
import ReelNode

/// The metrics of a gateway.
struct GatewayMeters: Sendable {
    let connections: Gauge
    let subscriptions: Gauge
    let streamWaiters: Gauge
    let framesIn: Counter
    let framesPushed: Counter
    let bytesPushed: Counter
    let eventsRead: Counter
    let pagesRead: Counter
    let pagesJoined: Counter
    let pagesKept: Counter
    let ringEvents: Counter
    let snapshotEvents: Counter
    let logEvents: Counter
    let voids: VoidWatch
    let ahead: AheadWatch
    let trimsSkipped: Counter
    let acks: Counter
    let lagged: Counter
    let sendQueueBytes: Gauge
    let slowConnections: Gauge
    let appends: Histogram
    let limits: LimitMeters
    private let nacks: [ErrorCode: Counter]
    private let errors: [ErrorCode: Counter]
    private let closings: [SocketEnd: Counter]

    init(_ metrics: Metrics, epoch: Epoch, logger: Logger) {
        limits = LimitMeters(metrics)
        connections = metrics.gauge("reel_gateway_connections", "Open sockets.")
        subscriptions = metrics.gauge("reel_gateway_subscriptions", "Subscriptions of open sockets.")
        streamWaiters = metrics.gauge(
            "reel_gateway_http_subscribers",
            "Event streams and long polls that wait over HTTP."
        )
        framesIn = metrics.counter("reel_gateway_frames_received_total", "Frames that clients sent.")
        framesPushed = metrics.counter(
            "reel_gateway_frames_pushed_total",
            "Frames pushed to subscriptions, and messages to event streams."
        )
        bytesPushed = metrics.counter("reel_gateway_pushed_bytes_total", "Bytes of the frames and messages pushed.")
        eventsRead = metrics.counter("reel_gateway_records_read_total", "Records read from the log's tail.")
        func pages(_ source: String) -> Counter {
            metrics.counter(
                "reel_gateway_pages_total",
                "Pages of the log that clients in catch-up needed.",
                labels: ["source": source]
            )
        }
        (pagesRead, pagesJoined, pagesKept) = (pages("read"), pages("joined"), pages("kept"))
        func events(_ source: String) -> Counter {
            metrics.counter(
                "reel_gateway_caught_up_events_total",
                "Events that clients in catch-up needed, by where they were found.",
                labels: ["source": source]
            )
        }
        (ringEvents, snapshotEvents, logEvents) = (events("ring"), events("snapshot"), events("log"))
        voids = VoidWatch("reel_gateway_void_records_total", epoch: epoch, metrics: metrics, logger: logger)
        ahead = AheadWatch(epoch: epoch, metrics: metrics, logger: logger)
        trimsSkipped = metrics.counter(
            "reel_gateway_trimmed_ranges_total",
            "Times that the log was trimmed before it was read, and reading continued after the trimmed range."
        )
        acks = metrics.counter("reel_gateway_acks_total", "Events acked.")
        lagged = metrics.counter(
            "reel_gateway_lagged_total",
            "Subscriptions ended because their client read too slowly."
        )
        sendQueueBytes = metrics.gauge("reel_gateway_send_queue_bytes", "Bytes that wait for the clients of sockets.")
        slowConnections = metrics.gauge(
            "reel_gateway_backlogged_connections",
            "Open sockets whose send queue is more than half full."
        )
        appends = metrics.histogram(
            "reel_gateway_append_seconds",
            "From handing records to the log to its report.",
            bounds: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 5_000].map { .milliseconds($0) }
        )
        func family(_ name: String, _ help: String) -> [ErrorCode: Counter] {
            var counters: [ErrorCode: Counter] = [:]
            for code in ErrorCode.allCases {
                counters[code] = metrics.counter(name, help, labels: ["code": code.rawValue])
            }
            return counters
        }
        nacks = family("reel_gateway_nacks_total", "Events nacked, by code.")
        errors = family("reel_gateway_errors_total", "Errors told to clients, by code.")
        var closings: [SocketEnd: Counter] = [:]
        for end in SocketEnd.allCases {
            closings[end] = metrics.counter(
                "reel_gateway_closed_total",
                "Sockets that have ended, by reason.",
                labels: ["reason": end.rawValue]
            )
        }
        self.closings = closings
    }

    func pushed(frames: Int, bytes: Int) {
        framesPushed.add(frames)
        bytesPushed.add(bytes)
    }

    func nacked(_ code: ErrorCode) { nacks[code]?.add() }
    func failed(_ code: ErrorCode) { errors[code]?.add() }
    func closed(_ end: SocketEnd) { closings[end]?.add() }

    /// Registers the gauges that are computed when they are read.
    static func watch(_ context: GatewayContext, _ metrics: Metrics) {
        for partition in 0..<context.partitions {
            metrics.gauge(
                "reel_log_first_seq",
                "The first seq that the log has; -1: none.",
                labels: ["partition": "\(partition)"]
            ) { Int(context.health.first(of: partition)) }
        }
        for state in LogState.allCases {
            metrics.gauge(
                "reel_gateway_log_state",
                "The state of the log: 1 for the current state, 0 for the others.",
                labels: ["state": state.rawValue]
            ) { context.health.logState == state ? 1 : 0 }
        }
        metrics.gauge("reel_gateway_oldest_publish_seconds", "How long the oldest event has waited for the log.") {
            .milliseconds(context.health.backlog.waitedMs)
        }
        metrics.gauge("reel_gateway_in_flight_events", "Events on their way into the log.") {
            context.health.backlog.events
        }
        metrics.gauge(
            "reel_gateway_in_flight_bytes",
            "Bytes of events on their way into the log, with the overhead of each event."
        ) { context.health.backlog.bytes }
        metrics.gauge("reel_gateway_pages_bytes", "Bytes of the cached pages.") { context.pages.byteCount }
        let limit = context.settings.inFlightBytes
        metrics.gauge(
            "reel_gateway_in_flight_limit_bytes",
            "The limit of bytes on their way into the log (--in-flight-bytes)."
        ) { limit }
        metrics.gauge(
            "reel_gateway_peer_lag_seconds",
            "The time for which the other gateways have read on without this one."
        ) {
            .milliseconds(context.health.lagMs)
        }
        for partition in 0..<context.partitions {
            metrics.gauge("reel_gateway_seq", "The last seq read.", labels: ["partition": "\(partition)"]) {
                Int(context.health.seq(of: partition))
            }
        }
    }
}
