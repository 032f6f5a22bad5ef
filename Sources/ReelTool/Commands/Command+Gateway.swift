import ReelGateway
import ReelLog
import ReelNode

extension Command {
    /// `reel gateway`: a gateway in this process.
    static let gateway = Command(
        "gateway",
        "run a gateway between clients and the log",
        about: """
            Serves the WebSocket and the HTTP interface on one port. A gateway is stateless: if it ends, clients
            continue at another one. The first line on standard output is `listening on HOST:PORT`; log lines go to
            standard error. SIGTERM starts a drain: the clients are told to leave, then the gateway ends. A second
            SIGTERM ends it at once. A payer is the subject of a client's token, or without keys the client's address.
            """,
        settings: GatewayArguments.all,
        examples: [
            Example("reel gateway --log sqlite:log.sqlite", "on 127.0.0.1:7350"),
            Example("reel gateway --listen 10.0.0.7:7350 --jwks public.json", "for other machines"),
        ]
    ) { options, console in
        var settings = try GatewayArguments.settings(options)
        return try await NodeRun.run(options, settings.node, console) { run in
            (settings.node.listen, settings.node.adminListen) = (run.listen, run.adminListen)
            let gateway = try Gateway(
                log: run.log,
                number: run.current.number,
                deployment: run.current.deployment,
                settings: settings,
                logger: run.logger,
                metrics: Metrics(of: run.log),
                notice: run.notice
            )
            return NodeRun.Started(node: gateway)
        }
    }
}
