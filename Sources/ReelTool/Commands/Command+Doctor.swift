import ReelBase
import ReelCore
import ReelLog
import ReelNode

extension Command {
    /// `reel doctor`: a diagnosis of the cluster.
    static let doctor = Command(
        "doctor",
        "find out why something is not up to date, and what to do about it",
        about: """
            Asks a node, then all nodes that it knows, and with --log the log itself. Reports which nodes answer, the
            state of the log, nodes that lag and whether they catch up, and requests that were refused. With --stream it
            also compares the digests of the stream's state on all snapshot nodes. With --site it shows the last
            consumed event of a device, and events that are missing. It takes a second, because it measures twice, and
            changes nothing.

            Each line is ok, a note, a warning or a problem. The exit code is 0 if there is no problem, and 3 if neither
            a node nor the log answers. It is 1 if there is a problem, such as a --stream to which no event was
            published.
            """,
        settings: NodeArguments.all + [
            LogArguments.log.saying(
                "also ask this log itself: sqlite:PATH or kafka:HOST:PORT,HOST:PORT",
                showsDefault: false
            ),
            KafkaArguments.properties, stream, site, CommonSettings.json,
        ],
        examples: [
            Example("reel doctor", "the cluster of the node on this machine"),
            Example("reel doctor --url http://a.example:7350 --stream todo", "a cluster and one stream"),
            Example(
                "reel doctor --stream todo --site 6f1c3a0e-8d0b-4a53-9a3e-2f1f5c1f7b11 --json",
                "the cluster, one stream and one device, as JSON"
            ),
        ]
    ) { options, console in
        let wantedStream = try options[stream].map(streamName)
        let wantedSite = try options[site].map { text throws(CommandError) -> Site in
            guard let site = Site(text) else {
                throw CommandError(.usage, "--site is `\(text)`; expected is a UUID in lower case")
            }
            guard wantedStream != nil else {
                throw CommandError(.usage, "--site needs --stream: a site belongs to one stream")
            }
            return site
        }
        let asksLog = options[LogArguments.log] != nil
        let named = asksLog && options[NodeArguments.url].isEmpty ? [] : try NodeArguments.addresses(options)
        let probe = try await NodeProbe()
        defer { probe.close() }
        let log = asksLog ? await logAnswer(options, console) : nil
        let visit = ClusterVisit(
            probe: probe,
            tls: try NodeArguments.trust(options),
            token: options[NodeArguments.token]
        )
        var report = await visit.report(named: named, log: log)
        report.hasBrokers = LogArguments.hasBrokers(options)
        var findings = Diagnosis(report: report).findings
        if let wantedStream {
            let visit = StreamVisit(probe: probe, stream: wantedStream)
            let streamReport = await visit.report(
                gateway: (report.living.first(where: \.isGateway) ?? report.nodes.first(where: \.answers))?.address,
                snapshots: report.askedForStates.map(\.address),
                site: wantedSite,
                isPartial: report.isPartial
            )
            let ofStream = StreamDiagnosis(report: streamReport, nowMs: WallClock.nowMs()).findings
            findings.removeAll { known in ofStream.contains { $0.text == known.text } }
            findings += ofStream
        }
        for finding in findings {
            if options[CommonSettings.json] {
                try console.write(finding.json)
            } else {
                for line in finding.lines { try console.print(line) }
            }
        }
        let isAnswered = report.nodes.contains(where: \.answers) || (try? report.log?.get()) != nil
        guard isAnswered else { return .unreachable }
        return findings.contains { $0.level == .problem } ? .failed : .done
    }

    private static let stream = Setting<String?>.text("stream", "NAME", "name of the stream")
    private static let site = Setting<String?>.text("site", "UUID", "site of a device in the stream")

    /// The timeout for an answer of the log, in seconds.
    private static let logSeconds = 10

    /// Asks the log. A log that does not answer in time becomes a failure, and its thread is abandoned.
    private static func logAnswer(_ options: Options, _ console: Console) async -> ClusterReport.LogAnswer {
        do throws(LogError) {
            let answer = try await withInactivityTimeout(silence: { try await Task.sleep(for: .seconds(logSeconds)) }) {
                heard in
                ask(options, console, heard)
            }
            return answer ?? .failure(CommandError(.unreachable, "it has not answered within \(logSeconds) seconds"))
        } catch {
            return .failure(CommandError(error))
        }
    }

    private static func ask(
        _ options: Options,
        _ console: Console,
        _ heard: () -> Void
    ) -> ClusterReport.LogAnswer {
        do {
            let log = try LogArguments.open(options, console)
            defer { log.close() }
            heard()
            let store = try LogArguments.store(options, console)
            defer { store.close() }
            return .success(try ClusterReport.ask(log, store, heard))
        } catch {
            return .failure(CommandError(error))
        }
    }
}
