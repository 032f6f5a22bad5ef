import ReelGateway
import ReelLog
import ReelNode

/// A gateway in this process on a log in memory, for replays by devices without a node.
struct ReplayNode {
    private let log: MemoryLog
    private let gateway: Gateway

    /// Starts the gateway on a free port of the loopback.
    init() throws {
        var settings = GatewaySettings()
        settings.node.listen = "127.0.0.1:0"
        settings.node.loops = 1
        let log = try MemoryLog(partitions: 1)
        do {
            gateway = try Gateway(log: log, settings: settings, logger: Logger(threshold: .error))
        } catch {
            log.close()
            throw error
        }
        self.log = log
    }

    /// The address for clients.
    var url: String { "http://\(gateway.address)" }

    /// Ends the gateway at once: the second request to end skips the drain.
    func end() async {
        gateway.end.begin()
        gateway.end.begin()
        await gateway.waitUntilEnded()
        log.close()
    }
}
