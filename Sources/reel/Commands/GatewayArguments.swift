import ReelGateway

/// The settings of every command that runs a gateway, with those of any node.
enum GatewayArguments {
    static let inFlightBytes = Setting<Int>.number(
        "in-flight-bytes",
        "N",
        (1 << 20)...(1 << 40),
        default: 128 << 20,
        "bytes on their way into the log at most; beyond that it answers `overloaded`"
    )

    /// All of them.
    static let all: [any AnySetting] = ServingArguments.all + [inFlightBytes]

    /// What the options say for a gateway.
    static func settings(_ options: Options) throws(Complaint) -> GatewaySettings {
        var settings = GatewaySettings()
        settings.node = try ServingArguments.nodeSettings(options)
        settings.inFlightBytes = options[inFlightBytes]
        return settings
    }
}
