import NodeTestSupport

@testable import ReelGateway

extension GatewaySettings {
    /// The settings of a gateway in a test's process. On a busy machine this process may wait long for a processor, so
    /// every timeout is long.
    static var forTests: GatewaySettings {
        var settings = GatewaySettings()
        settings.node = .forTests
        settings.helloMs = 1_000_000
        (settings.pingMs, settings.readMs, settings.messageMs) = (1_000_000, 1_000_000, 1_000_000)
        (settings.degradedMs, settings.unavailableMs) = (1_000_000, 1_000_000)
        (settings.behindMs, settings.publishMs, settings.nackHoldMs) = (1_000_000, 1_000_000, 1_000_000)
        (settings.peerMs, settings.peerHeadMs, settings.indexMs) = (1_000_000, 1_000_000, 1_000_000)
        settings.hedgeMs = 1_000_000
        settings.pollS = 1_000
        settings.aheadMs = 200
        settings.peerLagMsMax = 0
        return settings
    }
}
