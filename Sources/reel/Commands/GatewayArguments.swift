import ReelCore
import ReelGateway
import ReelNet
import ReelNode

/// The settings of every command that runs a gateway, with those of any node.
enum GatewayArguments {
    static let inFlightBytes = Setting<Int>.number(
        "in-flight-bytes",
        "N",
        (1 << 20)...(1 << 40),
        default: 128 << 20,
        "bytes on their way into the log; beyond that, `overloaded`"
    )
    static let eventBytes = Setting<Int>.number(
        "event-bytes",
        "N",
        (4 << 10)...Limits.value,
        default: 256 << 10,
        "an event at most, as it stands in the log"
    )
    static let frameBytes = Setting<Int>.number(
        "frame-bytes",
        "N",
        (64 << 10)...(8 << 20),
        default: 1 << 20,
        "a frame of a socket at most, in both directions"
    )
    static let sendQueueBytes = Setting<Int>.number(
        "send-queue-bytes",
        "N",
        (128 << 10)...(1 << 30),
        default: 4 << 20,
        "unread of a socket: beyond, it has `lagged`; twice as much, it ends"
    )

    static let subscriptions = Setting<Int>.number(
        "subscriptions",
        "N",
        1...1_000_000,
        default: 1_000,
        "subscriptions of one connection"
    )
    static let publishesPerSecond = Setting<Int?>.number(
        "publishes-per-second",
        "N",
        0...1_000_000,
        "events of one subject, or address, in a stream a second (in all: 4 times); 0: no limit"
    )
    static let publishBytesPerSecond = Setting<Int?>.number(
        "publish-bytes-per-second",
        "N",
        0...(1 << 40),
        "bytes of events, likewise; 0: no limit"
    )
    static let newSitesPerHour = Setting<Int?>.number(
        "new-sites-per-hour",
        "N",
        0...1_000_000,
        "sites that one subject, or address, begins in a stream an hour, likewise; 0: no limit"
    )
    static let payerSubscriptions = Setting<Int?>.number(
        "subscriptions-per-client",
        "N",
        0...100_000_000,
        "subscriptions of one subject, or address, on this node; 0: no limit"
    )
    static let subjectConnections = Setting<Int?>.number(
        "connections-per-subject",
        "N",
        0...1_000_000,
        "sockets and waiting requests of one token subject; else a tenth of all; 0: no limit"
    )
    static let pingMs = Setting<Int>.number(
        "ping-ms",
        "N",
        1_000...3_600_000,
        default: 25_000,
        "a connection is pinged every so long"
    )
    static let pongMs = Setting<Int>.number(
        "pong-ms",
        "N",
        100...600_000,
        default: 8_000,
        "a ping is answered within so long; two that are not end it"
    )

    static let peerLagMsMax = Setting<Int>.number(
        "peer-lag-max-ms",
        "N",
        0...86_400_000,
        default: 30_000,
        "not ready once others read on for so long without it; 0: always ready"
    )

    static let noDeflate = Setting<Bool>.flag(
        "no-compression",
        "pack no messages of sockets, also not for who offers permessage-deflate"
    )

    static let echo = Setting<Bool>.flag(
        "debug-echo",
        "echo WebSocket messages at /debug/echo, on a loopback address only"
    )

    /// All of them.
    static let all: [any AnySetting] =
        ServingArguments.all + [
            eventBytes, frameBytes, sendQueueBytes, inFlightBytes, subjectConnections, subscriptions,
            payerSubscriptions,
            publishesPerSecond, publishBytesPerSecond, newSitesPerHour, pingMs, pongMs, peerLagMsMax, noDeflate, echo,
        ]

    /// What the options say for a gateway.
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
        if let most = options[publishesPerSecond] { settings.publishesPerSecond = PayerLimit(most) }
        if let most = options[publishBytesPerSecond] { settings.publishBytesPerSecond = PayerLimit(most) }
        if let most = options[newSitesPerHour] { settings.newSitesPerHour = PayerLimit(most) }
        if let most = options[payerSubscriptions] { settings.payerSubscriptions = PayerLimit(most) }
        settings.helloMs = settings.node.handshakeMs
        settings.pingMs = Int64(options[pingMs])
        settings.pongMs = Int64(options[pongMs])
        settings.peerLagMsMax = Int64(options[peerLagMsMax])
        settings.node.deflates = !options[noDeflate]
        settings.echoes = options[echo]
        if settings.echoes, (try? SocketAddress(parsing: settings.node.listen))?.isLoopback != true {
            throw CommandError(.usage, "--debug-echo is not for other machines; expected is --listen 127.0.0.1:PORT")
        }
        try check(settings)
        try checkKafka(options)
        return settings
    }

    /// A shorter time says nothing: a few announcements late.
    private static let peerLagMsLeast: Int64 = 10_000

    /// What a publish has besides its events.
    private static let envelopeBytes = 4 << 10

    /// What is allowed must fit through what it comes by, and what is told apart must differ.
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
                    + "--frame-bytes \(frame): else who reads one is taken for slow"
            )
        }
        guard settings.peerLagMsMax == 0 || settings.peerLagMsMax >= peerLagMsLeast else {
            throw CommandError(
                .usage,
                "--peer-lag-max-ms is \(settings.peerLagMsMax); expected is 0, or at least \(peerLagMsLeast): gateways "
                    + "hear of each other every \(settings.node.announceMs) ms"
            )
        }
    }

    /// The Kafka client must have room for all that the gateway takes.
    private static func checkKafka(_ options: Options) throws(CommandError) {
        let given = try KafkaArguments.properties(options)
        let most = options[inFlightBytes]
        for (name, least) in [
            ("queue.buffering.max.kbytes", (most + 1023) >> 10),
            ("queue.buffering.max.messages", most / GatewaySettings.eventCostBytesMin),
        ] {
            guard let found = given[name].flatMap(Int.init), found < least, found > 0 else { continue }
            throw CommandError(
                .usage,
                "--kafka.\(name) is \(found); expected is at least \(least), which --in-flight-bytes \(most) may need"
            )
        }
    }
}
