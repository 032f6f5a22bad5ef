import ReelNet

extension Command {
    /// `reel ready`: a check that nodes can serve.
    static let ready = Command(
        "ready",
        "check that nodes are ready, or wait until they are",
        about: """
            A node is ready when each of its roles has read the log up to the end that it had at the node's start. It is
            not ready during a drain, or while a partition has stopped (damaged, diverged, ahead_of_log, truncated). A
            gateway is not ready while it is too far behind the other gateways (--peer-lag-max-ms). An outage of the log
            does not make it unready.

            Without --url it asks the node on this machine that has the same settings: at the address of --listen, and
            with TLS if --tls-cert is given, whose certificate the node must then have. So a health check in a container
            can use the variables REEL_LISTEN and REEL_TLS_CERT of the node.

            The exit code is 0 if every named node is ready, 1 if one is not ready, 3 if one does not answer.
            """,
        settings: [
            NodeArguments.url, NodeArguments.authorities, wait,
            ServingArguments.listen, ServingArguments.certificate,
        ],
        examples: [
            Example("reel ready", "the node on this machine"),
            Example("reel ready --listen 0.0.0.0:7443 --tls-cert node.pem", "the node on this machine, with TLS"),
            Example("reel ready --wait 30 --url http://a.example:7350", "after a start: wait until the node can serve"),
        ]
    ) { options, console in
        let probe = try await NodeProbe()
        defer { probe.close() }
        let deadline = ContinuousClock.now + .seconds(options[wait])
        var code = ExitCode.done
        for node in try addresses(options) {
            var found = await verdict(of: node, probe)
            while found.code != .done, ContinuousClock.now < deadline {
                try await Task.sleep(for: .milliseconds(100))
                found = await verdict(of: node, probe)
            }
            try console.print("\(node): \(found.text)")
            if code == .done { code = found.code }
        }
        return code
    }

    /// Returns the nodes of --url; without --url, the node on this machine, by its own settings.
    private static func addresses(_ options: Options) throws(CommandError) -> [NodeAddress] {
        guard options[NodeArguments.url].isEmpty else { return try NodeArguments.addresses(options) }
        guard let (host, port) = SocketAddress.split(options[ServingArguments.listen]), port > 0 else {
            throw CommandError(
                .usage,
                "--listen is `\(options[ServingArguments.listen])`; expected is HOST:PORT with the port of a running"
                    + " node, or name the node with --url"
            )
        }
        // A node that listens on all addresses is asked at the loopback address.
        let local = ["0.0.0.0": "127.0.0.1", "": "127.0.0.1", "::": "::1"][host] ?? host
        let authority = local.contains(":") ? "[\(local)]:\(port)" : "\(local):\(port)"
        guard let certificate = options[ServingArguments.certificate] else {
            return [try NodeArguments.address("http://\(authority)", options)]
        }
        var node = try NodeAddress("https://\(authority)")
        do throws(NetError) {
            node.tls = try TLSClient(certificate: certificate)
        } catch {
            throw CommandError(InputFile.code(ofUseless: [certificate]), error.message)
        }
        return [node]
    }

    private static let wait = Setting<Int>.number(
        "wait",
        "SECONDS",
        0...3_600,
        default: 0,
        "seconds to wait until all nodes are ready"
    )

    private static func verdict(of node: NodeAddress, _ probe: NodeProbe) async -> (code: ExitCode, text: String) {
        do {
            let standing = try await probe.standing(of: node)
            return standing.isReady ? (.done, "ready") : (.failed, "not ready: \(standing.reason)")
        } catch {
            return error.refusal == nil
                ? (.unreachable, "no answer: \(error.message)") : (.failed, "refuses requests: \(error.message)")
        }
    }
}
