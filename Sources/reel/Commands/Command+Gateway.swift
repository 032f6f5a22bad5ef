import ReelGateway
import ReelLog
import ReelNode

extension Command {
    /// A gateway in this process.
    static let gateway = Command(
        "gateway",
        "run a gateway: clients in front, the log behind",
        about: """
            Serves the socket and the HTTP interface on one port. It holds nothing that matters: kill it, and clients
            go on at another one. The first line on standard output is `listening on HOST:PORT`; what happens then
            goes to standard error, one line each. SIGTERM sends the clients away and ends; a second one ends at once.
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
