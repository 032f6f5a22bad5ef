package import ReelNode

extension NodeSettings {
    /// The settings of a node in a test's process: it listens on a free port, announces itself often and ends soon. On
    /// a busy machine a test process may wait long for a processor, so the timeout of a request's head is long.
    package static var forTests: NodeSettings {
        var settings = NodeSettings()
        settings.listen = "127.0.0.1:0"
        settings.loops = 1
        settings.announceMs = 100
        settings.drainSpreadMs = 100
        settings.drainLimitMs = 60_000
        settings.handshakeMs = 1_000_000
        return settings
    }
}
