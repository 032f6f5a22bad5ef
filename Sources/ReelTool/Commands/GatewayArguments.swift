import ReelCore
import ReelGateway
import ReelNet
import ReelNode

/// The settings of every command that runs a gateway, and their checks.
enum GatewayArguments {
    static let inFlightBytes = Setting<Int>.number(
        "in-flight-bytes",
        "N",
        (1 << 20)...(1 << 40),
        default: 128 << 20,
        "maximum event bytes in flight to the log; above it: `overloaded`"
    )
    static let eventBytes = Setting<Int>.number(
        "event-bytes",
        "N",
        (4 << 10)...Limits.value,
        default: 256 << 10,
        "maximum bytes of one event, in the form that the log stores"
    )
    static let frameBytes = Setting<Int>.number(
        "frame-bytes",
        "N",
        (64 << 10)...(8 << 20),
        default: 1 << 20,
        "maximum bytes of one WebSocket frame, in both directions"
    )
    static let sendQueueBytes = Setting<Int>.number(
        "send-queue-bytes",
        "N",
        (128 << 10)...(1 << 30),
        default: 4 << 20,
        "maximum unsent bytes per WebSocket; above: `lagged`, above 2x: closed"
    )

    static let subscriptions = Setting<Int>.number(
        "subscriptions",
        "N",
        1...1_000_000,
        default: 1_000,
        "maximum subscriptions of one connection"
    )
    static let publishesPerSecond = Setting<Int?>.number(
        "publishes-per-second",
        "N",
        0...1_000_000,
        "maximum events a second per payer and stream, 4 times that in all streams; 0: no limit"
    )
    static let publishBytesPerSecond = Setting<Int?>.number(
        "publish-bytes-per-second",
        "N",
        0...(1 << 40),
        "maximum event bytes a second per payer and stream, 4 times that in all; 0: no limit"
    )
    static let newSitesPerHour = Setting<Int?>.number(
        "new-sites-per-hour",
        "N",
        0...1_000_000,
        "maximum new sites an hour per payer and stream, 4 times that in all; 0: no limit"
    )
    static let payerSubscriptions = Setting<Int?>.number(
        "subscriptions-per-client",
        "N",
        0...100_000_000,
        "maximum subscriptions per payer on this node; 0: no limit"
    )
    static let subjectConnections = Setting<Int?>.number(
        "connections-per-subject",
        "N",
        0...1_000_000,
        "maximum sockets and long polls per token subject; default: a tenth of all; 0: no limit"
    )
    static let pingMs = Setting<Int>.number(
        "ping-ms",
        "N",
        1_000...3_600_000,
        default: 25_000,
        "interval between pings of a WebSocket"
    )
    static let pongMs = Setting<Int>.number(
        "pong-ms",
        "N",
        100...600_000,
        default: 8_000,
        "timeout for the answer to a ping; two unanswered pings end the socket"
    )

    static let peerLagMsMax = Setting<Int>.number(
        "peer-lag-max-ms",
        "N",
        0...86_400_000,
        default: 30_000,
        "maximum lag behind other gateways; above it: not ready; 0: no limit"
    )

    static let noDeflate = Setting<Bool>.flag(
        "no-compression",
        "do not compress WebSocket messages, even if the client offers permessage-deflate"
    )

    static let echo = Setting<Bool>.flag(
        "debug-echo",
        "return each WebSocket message at /debug/echo; only with a loopback address"
    )

    /// All settings of a gateway, with those of any node.
    static let all: [any AnySetting] =
        ServingArguments.all + [
            eventBytes, frameBytes, sendQueueBytes, inFlightBytes, subjectConnections, subscriptions,
            payerSubscriptions,
            publishesPerSecond, publishBytesPerSecond, newSitesPerHour, pingMs, pongMs, peerLagMsMax, noDeflate, echo,
        ]

    /// Returns the settings of the gateway that `options` describe.
    ///
    /// - Throws: a `CommandError` if a value is wrong, or two values contradict each other.
    static func settings(_ options: Options) throws(CommandError) -> GatewaySettings {
        var settings = GatewaySettings()
        settings.node = try ServingArguments.nodeSettings(options)
        settings.inFlightBytes = options[inFlightBytes]
        settings.eventBytes = options[eventBytes]
        settings.frameBytes = options[frameBytes]
        settings.sendQueueBytes = options[sendQueueBytes]
        settings.paceBytes = min(settings.paceBytes, settings.sendQueueBytes / 4)
        settings.subscriptions = options[subscriptions]
        settings.subjectConnections = options[subjectConnections]
        if let limit = options[publishesPerSecond] { settings.publishesPerSecond = PayerLimit(limit) }
        if let limit = options[publishBytesPerSecond] { settings.publishBytesPerSecond = PayerLimit(limit) }
        if let limit = options[newSitesPerHour] { settings.newSitesPerHour = PayerLimit(limit) }
        if let limit = options[payerSubscriptions] { settings.payerSubscriptions = PayerLimit(limit) }
        settings.helloMs = settings.node.handshakeMs
        settings.pingMs = Int64(options[pingMs])
        settings.pongMs = Int64(options[pongMs])
        settings.peerLagMsMax = Int64(options[peerLagMsMax])
        settings.node.deflates = !options[noDeflate]
        settings.echoes = options[echo]
        if settings.echoes, (try? SocketAddress(parsing: settings.node.listen))?.isLoopback != true {
            throw CommandError(.usage, "--debug-echo needs a loopback address; expected is --listen 127.0.0.1:PORT")
        }
        try check(settings)
        try checkKafka(options)
        return settings
    }

    /// The smallest limit on the lag, in milliseconds: a shorter one would measure late announcements.
    private static let peerLagMsMin: Int64 = 10_000

    /// The largest size of a publish without its events, in bytes.
    private static let envelopeBytes = 4 << 10

    /// Checks limits against each other: the largest event must fit into a frame and a body, and two frames into the
    /// send queue.
    private static func check(_ settings: GatewaySettings) throws(CommandError) {
        let (event, frame) = (settings.eventBytes, settings.frameBytes)
        for (name, found) in [("frame-bytes", frame), ("body-bytes", settings.node.bodyBytes)]
        where found < event + envelopeBytes {
            throw CommandError(
                .usage,
                "--\(name) is \(found); expected is at least \(event + envelopeBytes), to publish an event of "
                    + "--event-bytes \(event)"
            )
        }
        guard settings.sendQueueBytes >= 2 * frame else {
            throw CommandError(
                .usage,
                "--send-queue-bytes is \(settings.sendQueueBytes); expected is at least \(2 * frame), two frames of "
                    + "--frame-bytes \(frame): otherwise a client that reads one large frame counts as slow"
            )
        }
        guard settings.peerLagMsMax == 0 || settings.peerLagMsMax >= peerLagMsMin else {
            throw CommandError(
                .usage,
                "--peer-lag-max-ms is \(settings.peerLagMsMax); expected is 0, or at least \(peerLagMsMin): gateways "
                    + "announce themselves every \(settings.node.announceMs) ms"
            )
        }
    }

    /// Checks that the queue of the Kafka client can hold all events that the gateway accepts.
    private static func checkKafka(_ options: Options) throws(CommandError) {
        let given = try KafkaArguments.properties(options)
        let bytes = options[inFlightBytes]
        for (name, minimum) in [
            ("queue.buffering.max.kbytes", (bytes + 1023) >> 10),
            ("queue.buffering.max.messages", bytes / GatewaySettings.eventCostBytesMin),
        ] {
            guard let found = given[name].flatMap(Int.init), found < minimum, found > 0 else { continue }
            throw CommandError(
                .usage,
                "--kafka.\(name) is \(found); expected is at least \(minimum), to hold --in-flight-bytes \(bytes)"
            )
        }
    }
}
