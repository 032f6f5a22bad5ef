import Glibc
import ReelCore
import ReelLab
import ReelNet
import Synchronization

extension Command {
    /// `reel load`: many clients at once.
    static let load = Command(
        "load",
        "load gateways with many clients, measure latencies, and check that every event arrives",
        about: """
            Publishers send events at a fixed rate, even if the cluster is slower: the latency of an event is measured
            from the time at which it was due. Readers follow streams and fetch missed ranges; editors write one text
            together. Clients fail over to other gateways and retry like real clients. At the end, or after SIGINT,
            SIGTERM or SIGHUP, the command waits until every event is acknowledged and has arrived. The exit code is 1
            if that fails, or if an expectation is missed.

            A profile is a set of numbers for a purpose
            (\(LoadProfile.all.map(\.name).joined(separator: ", "))),
            or a file with lines NAME=NUMBER. The command line takes precedence. Published events stay in the log: use a
            --stream that no other client uses.
            """,
        settings: NodeArguments.all + [profile, streamName] + numbers + [
            settle, CommonSettings.seed, history, expect, json, html,
        ],
        examples: [
            Example("reel load --seconds 10", "ten publishers and ten readers on the local node"),
            Example("reel load --profile fanout --seconds 30 --expect 'p99<25ms'", "a profile, with a latency limit"),
            Example(
                "reel load --url http://a:7350 --url http://b:7350 --readers 1000 --rate 500 --history run-1",
                "on two gateways, until Ctrl-C; `reel check run-1` then checks the histories of a thousand readers"
            ),
        ]
    ) { options, console in
        let expectations = try options[expect].map { (text) throws(LoadFailure) in try LoadExpectation(text) }
        if let path = options[html] { try OutputFile.checkThatItCanBeWritten(path) }
        let load = try LoadRun(try plan(options))
        try load.loop.sync { load.loop.onInterruption { load.stop() } }
        let screen = console.isTerminal ? LoadScreen(console) : nil
        let warning = ClosedWarning(console)
        let report = try await load.run { progress in
            screen?.show(progress.lines)
            warning.check(progress)
        }
        screen?.clear()
        let found = report.judge(expectations)
        if options[json] {
            try console.print(report.json(found))
            for check in found where !check.isReached {
                console.note("reel: expected \(check.text), found \(check.found)")
            }
        } else {
            try console.print(page: report.text)
            for check in found {
                try console.print("expected   \(check.text): \(check.isReached ? "reached" : "MISSED"), \(check.found)")
            }
            try console.print("left       \(report.left)")
        }
        if let path = options[html] { try OutputFile.write(Array(report.page(found).utf8), to: path) }
        return report.isComplete && found.allSatisfy(\.isReached) ? .done : .failed
    }

    /// Returns the plan: the numbers of the profile, overridden by those of the command line.
    private static func plan(_ options: Options) throws -> LoadPlan {
        var values = try options[profile].map(profile(named:))?.numbers ?? [:]
        for (number, setting) in zip(LoadProfile.Number.allCases, numberSettings) {
            if let value = options[setting] { values[number] = value }
        }
        let name = try ReelTool.streamName(options[streamName])
        guard let streams = LoadPlan.streams(name.description, count: values[.streams] ?? 1) else {
            throw CommandError(
                .usage,
                "`\(name)` is too long for a name with a number after it; expected are at most 128 bytes"
            )
        }
        var plan = LoadPlan(urls: try NodeArguments.addresses(options).map(\.description), streams: streams)
        (plan.authorities, plan.token) = (options[NodeArguments.authorities], options[NodeArguments.token])
        plan.take(values)
        plan.settleSeconds = Double(options[settle])
        plan.seed = UInt64(options[CommonSettings.seed] ?? Int.random(in: 0...Int(Int32.max)))
        plan.histories = try options[history].map { try HistoryFolder($0) }
        return plan
    }

    private static func profile(named name: String) throws -> LoadProfile {
        if let profile = LoadProfile.all.first(where: { $0.name == name }) { return profile }
        guard access(name, R_OK) == 0 else {
            let names = LoadProfile.all.map(\.name)
            let near = nearest(to: name, among: names).map { "; did you mean `\($0)`?" } ?? ""
            throw CommandError(
                .usage,
                "`\(name)` is neither a file nor one of the profiles \(names.joined(separator: ", "))\(near)"
            )
        }
        return try LoadProfile(name: name, text: String(decoding: try InputFile.read(name), as: UTF8.self))
    }

    private static let profile = Setting<String?>.text("profile", "NAME|FILE", "profile: a set of numbers for the load")
    private static let streamName = Setting<String>.text(
        "stream",
        "NAME",
        default: "load",
        "name of the stream"
    )

    private static let numberSettings = LoadProfile.Number.allCases.map { number in
        Setting<Int?>.number(number.rawValue, "N", number.bounds, number.help)
    }
    private static let numbers: [any AnySetting] = numberSettings

    private static let settle = Setting<Int>.number(
        "settle",
        "S",
        0...100_000,
        default: 30,
        "seconds to wait at the end for events in flight"
    )
    private static let history = Setting<String?>.text(
        "history",
        "DIR",
        "keep histories and folded states in this new folder, for `reel check`"
    )
    private static let expect = Setting<[String]>.texts(
        "expect",
        "METRIC<BOUND",
        "such as p99<25ms, delivery.p99.9<=1s, cold.max<2s, pause.p99<2s, acked/s>=950"
    )
    private static let json = CommonSettings.json
    private static let html = Setting<String?>.text("html", "FILE", "write the report as an HTML page with plots")
}

/// The view of a running load on a terminal. Each state replaces the one before.
private final class LoadScreen: Sendable {
    private let console: Console

    init(_ console: Console) {
        self.console = console
        try? console.command("\u{1B}[2J")
    }

    func show(_ lines: [String]) {
        clear()
        for line in lines { try? console.print(line) }
        try? console.flush()
    }

    /// Moves the cursor to the top and clears the screen.
    func clear() {
        try? console.command("\u{1B}[H\u{1B}[J")
    }
}

/// Prints a warning, once, that names the gateways that accept no client.
private final class ClosedWarning: Sendable {
    private let console: Console
    private let isPrinted = Atomic<Bool>(false)

    init(_ console: Console) {
        self.console = console
    }

    func check(_ progress: LoadProgress) {
        guard !progress.closed.isEmpty, !isPrinted.exchange(true, ordering: .relaxed) else { return }
        let closed = progress.closed.joined(separator: ", ")
        console.note("reel: warning: no client is accepted at \(closed); the other gateways get all clients")
    }
}
