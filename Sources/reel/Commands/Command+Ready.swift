import ReelNet

extension Command {
    /// Whether nodes can serve.
    static let ready = Command(
        "ready",
        "ask nodes whether they are ready, or wait until they are",
        about: """
            A node is ready once it has read to the log's end as of its start, and until it leaves; a gateway not
            while the others are too far ahead of it (--ready-lag-ms). An outage of the log does not change that.
            Exit code 0 if every node that is named is ready, 1 if one is not, 3 if one does not answer. It is what
            a container's health check runs.
            """,
        settings: [NodeArguments.url, NodeArguments.authorities, wait],
        examples: [
            Example("reel ready", "the node on this machine"),
            Example("reel ready --wait 30 --url http://a.example:7350", "after a start, before what needs it"),
        ]
    ) { options, console in
        let probe = try await NodeProbe()
        defer { probe.close() }
        let deadline = ContinuousClock.now + .seconds(options[wait])
        var code = ExitCode.done
        for node in try NodeArguments.addresses(options) {
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
