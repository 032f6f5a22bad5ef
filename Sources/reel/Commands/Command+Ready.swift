import ReelNet

extension Command {
    /// Whether nodes can serve.
    static let ready = Command(
        "ready",
        "ask nodes whether they are ready, or wait until they are",
        about: """
            A node is ready once each of its roles has read to the log's end as of its start, and until it leaves; not
            while a partition has stopped (damaged, diverged, ahead_of_log, truncated), and a gateway not while the
            others are too far ahead of it (--peer-lag-max-ms). An outage of the log does not change that.

            Without --url it asks the node that runs here with the same settings: where --listen says, over TLS where
            --tls-cert names a certificate, which must then be that of the node. A container's health check runs it,
            where REEL_LISTEN and REEL_TLS_CERT hold for both.

            Exit code 0 if every node that is named is ready, 1 if one is not, 3 if one does not answer.
            """,
        settings: [
            NodeArguments.url, NodeArguments.authorities, wait,
            ServingArguments.listen, ServingArguments.certificate,
        ],
        examples: [
            Example("reel ready", "the node on this machine"),
            Example("reel ready --listen 0.0.0.0:7443 --tls-cert node.pem", "the same, where it speaks TLS"),
            Example("reel ready --wait 30 --url http://a.example:7350", "after a start, before what needs it"),
        ]
    ) { options, console in
        let probe = try await NodeProbe()
        defer { probe.close() }
        let deadline = ContinuousClock.now + .seconds(options[wait])
        var code = ExitCode.done
        for node in try addresses(options) {
            var verdict = await judge(node, probe)
            while verdict.code != .done, ContinuousClock.now < deadline {
                try await Task.sleep(for: .milliseconds(100))
                verdict = await judge(node, probe)
            }
            try console.print("\(node): \(verdict.text)")
            if code == .done { code = verdict.code }
        }
        return code
    }

    /// The nodes that are named; without one, that of this machine, as its own settings say.
    private static func addresses(_ options: Options) throws(CommandError) -> [NodeAddress] {
        guard options[NodeArguments.url].isEmpty else { return try NodeArguments.addresses(options) }
        guard let (host, port) = SocketAddress.split(options[ServingArguments.listen]), port > 0 else {
            throw CommandError(
                .usage,
                "--listen is `\(options[ServingArguments.listen])`; expected is HOST:PORT with the port of a node that"
                    + " runs, or name the node with --url"
            )
        }
        // A node that listens everywhere is asked at the loopback.
        let local = ["0.0.0.0": "127.0.0.1", "": "127.0.0.1", "::": "::1"][host] ?? host
        let place = local.contains(":") ? "[\(local)]:\(port)" : "\(local):\(port)"
        guard let certificate = options[ServingArguments.certificate] else {
            return [try NodeArguments.address("http://\(place)", options)]
        }
        var node = try NodeAddress("https://\(place)")
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
        "how long to wait until all are ready"
    )

    private static func judge(_ node: NodeAddress, _ probe: NodeProbe) async -> (code: ExitCode, text: String) {
        do {
            let standing = try await probe.standing(of: node)
            return standing.isReady ? (.done, "ready") : (.failed, "not ready: \(standing.reason)")
        } catch {
            return error.refusal == nil
                ? (.unreachable, "no answer: \(error.message)") : (.failed, "takes nobody: \(error.message)")
        }
    }
}
