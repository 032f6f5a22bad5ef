public import ReelNet

/// The admission control of a node: it bounds the connections and the memory. The loops of the node share it.
public final class NodeGate: Sendable {
    /// The gate of the servers' connections.
    public let connections: ConnectionGate
    private let tokens: TokenGate?
    private let memoryLimit: Int
    private let memoryUse: @Sendable () -> Int
    private let logger: Logger

    /// Makes a gate, and registers its counters and the metrics of the process.
    ///
    /// - Parameters:
    ///   - settings: The settings of the node, with its limits.
    ///   - metrics: The metrics of the node.
    ///   - logger: The logger of the node.
    public init(_ settings: NodeSettings, metrics: Metrics, logger: Logger) {
        let gate = ConnectionGate(
            limit: settings.connections,
            addressLimit: settings.addressConnections ?? settings.standardShareOfConnections,
            countsLoopback: settings.addressConnections != nil
        )
        connections = gate
        tokens = settings.tokens
        memoryLimit = settings.memoryBytes
        memoryUse = settings.memoryUse
        self.logger = logger
        ProcessMetrics.register(metrics, build: settings.build, commit: settings.commit)
        if let file = settings.logFile { DiskMetrics.register(metrics, logFile: file) }
        RefusedTokens.register(settings.tokens, metrics)
        for (name, folder) in settings.watchedFolders.sorted(by: { $0.key < $1.key }) {
            DiskMetrics.register(metrics, folder: folder, as: name)
        }
        if let tls = settings.tls {
            CertificateMetrics.register(metrics) { Int(tls.expiresAt) }
        }
        metrics.gauge("reel_node_connections", "Open connections, sockets included.") { gate.open }
        for refusal in ConnectionGate.Refusal.allCases {
            metrics.counter(
                "reel_node_refused_connections_total",
                "Connections that were not taken, by the limit that was reached: --connections-max, "
                    + "--connections-per-address, --memory-max-bytes.",
                labels: ["limit": refusal.rawValue]
            ) { gate.refused(refusal) }
        }
        for refusal in ConnectionGate.Refusal.allCases {
            let limit = refusal == .address ? "connections_per_address" : refusal.rawValue
            metrics.counter(LimitMeters.name, LimitMeters.help, labels: ["limit": limit]) { gate.refused(refusal) }
        }
        metrics.counter(LimitMeters.name, LimitMeters.help, labels: ["limit": "wrong_signatures"]) { [tokens] in
            tokens?.limited ?? 0
        }
        metrics.counter(
            "reel_node_descriptor_shortages_total",
            "Times that a connection waited in the kernel because the process had no descriptor for it."
        ) { gate.descriptorShortages }
        metrics.counter(
            "reel_node_slow_reader_resets_total",
            "Connections reset because the client read too slowly."
        ) { gate.slow }
        metrics.gauge("reel_node_resident_bytes", "Resident memory of the process.", measure: settings.memoryUse)
        metrics.gauge("reel_memory_limit_bytes", "Above this memory use the node accepts nothing new; 0: no limit.") {
            [memoryLimit] in memoryLimit
        }
    }

    /// True if the process uses more memory than its limit.
    public var lacksMemory: Bool { connections.lacksMemory }

    /// Checks the memory, and removes old wrong signatures. Called about once a second.
    public func look() {
        tokens?.tick()
        guard memoryLimit > 0 else { return }
        var use = memoryUse()
        // The resident memory may include freed memory of clients that have left.
        if use > memoryLimit {
            ResidentMemory.giveBack()
            use = memoryUse()
        }
        let lacks = use > memoryLimit
        guard lacks != connections.lacksMemory else { return }
        connections.lacksMemory = lacks
        let details: KeyValuePairs = ["found": "\(use)", "limit": "\(memoryLimit)"]
        if lacks {
            logger.warning("the memory limit is reached: nothing new is taken", details)
        } else {
            logger.info("memory is below the limit again", details)
        }
    }
}
