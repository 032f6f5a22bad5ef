import ReelCore
import ReelLog
import ReelNode

extension Command {
    /// Why something is not up to date.
    static let doctor = Command(
        "doctor",
        "say why something is not up to date, and what to do about it",
        about: """
            Asks a node, through it all others, and with --log the log itself: who answers, how the log does, who is
            behind and whether that gets less, and what clients were refused. With --stream also whether all snapshot
            nodes hold the same state of it, proven by its digest; with --site what was consumed of a device last, and
            what is missing. It takes a second, because it looks twice, and changes nothing.

            Each line is ok, a note, a warning or a problem. Exit code 0 if there is no problem, 1 if there is one, such
            as a --stream that nobody has written, 3 if neither a node nor the log answers.
            """,
        settings: NodeArguments.all + [
            LogArguments.log.saying(
                "ask this log itself, too: sqlite:PATH or kafka:HOST:PORT,HOST:PORT",
                showsDefault: false
            ),
            KafkaArguments.properties, stream, site, CommonSettings.json,
        ],
        examples: [
            Example("reel doctor", "the cluster that the node on this machine belongs to"),
            Example("reel doctor --url http://a.example:7350 --stream todo", "and one stream"),
            Example(
                "reel doctor --stream todo --site 6f1c3a0e-8d0b-4a53-9a3e-2f1f5c1f7b11 --json",
                "and one device, for a program"
            ),
        ]
    ) { options, console in
        let wantedStream = try options[stream].map(streamName)
        let wantedSite = try options[site].map { text throws(CommandError) -> Site in
            guard let site = Site(text) else {
                throw CommandError(.usage, "--site is `\(text)`; expected is a UUID in lower case")
            }
            guard wantedStream != nil else {
                throw CommandError(.usage, "--site needs --stream: a site counts per stream")
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

    private static let stream = Setting<String?>.text("stream", "NAME", "the stream that is meant")
    private static let site = Setting<String?>.text("site", "UUID", "a device, by its site in the stream")

    /// A log that says nothing for longer is as good as away.
    private static let logSeconds = 10

    /// What the log says; one that hangs is left behind.
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
