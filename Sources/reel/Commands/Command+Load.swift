import Glibc
import ReelCore
import ReelLab
import ReelNet
import Synchronization

extension Command {
    /// Many clients at once.
    static let load = Command(
        "load",
        "drive gateways with many clients, and say how fast and how whole everything arrives",
        about: """
            Publishers hand over events at a fixed rate, whether or not the cluster keeps up: the latency of an event
            counts from the moment at which it was due. Readers listen, and fetch what they miss; editors write in one
            text together. Clients go from one gateway to another as real ones do, and send again what was not acked.
            At the end, or after SIGINT, SIGTERM or SIGHUP, it waits until everything is acked and has arrived; exit
            code 1 if that does not happen, or an expectation is missed. A profile names numbers that suit a purpose
            (\(LoadProfile.all.map(\.name).joined(separator: ", "))), or is a file with a line NAME=NUMBER for each;
            what is given on the command line wins. What was published stays in the log, as everything does: give it a
            --stream that nobody else uses.
            """,
        settings: NodeArguments.all + [profile, streamName] + numbers + [
            settle, CommonSettings.seed, history, expect, json, html,
        ],
        examples: [
            Example("reel load --seconds 10", "ten publishers and ten readers on the local node"),
            Example("reel load --profile fanout --seconds 30 --expect 'p99<25ms'", "and how fast it has to be"),
            Example(
                "reel load --url http://a:7350 --url http://b:7350 --readers 1000 --rate 500 --history run-1",
                "on two gateways, until Ctrl-C; `reel check run-1` then judges what a thousand readers saw"
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
            warning.look(at: progress)
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

    /// What is to be done: the profile's numbers, and above them those of the command line.
    private static func plan(_ options: Options) throws -> LoadPlan {
        var values = try options[profile].map(profile(named:))?.numbers ?? [:]
        for (number, setting) in zip(LoadProfile.Number.allCases, numberSettings) {
            if let value = options[setting] { values[number] = value }
        }
        let name = try reel.streamName(options[streamName])
        guard let streams = LoadPlan.streams(name.description, count: values[.streams] ?? 1) else {
            throw CommandError(
                .usage,
                "`\(name)` is too long for a name with a number behind it; expected are at most 128 bytes"
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
                "`\(name)` is no file, and no profile of \(names.joined(separator: ", "))\(near)"
            )
        }
        return try LoadProfile(name: name, text: String(decoding: try InputFile.read(name), as: UTF8.self))
    }

    private static let profile = Setting<String?>.text("profile", "NAME|FILE", "a kind of load")
    private static let streamName = Setting<String>.text(
        "stream",
        "NAME",
        default: "load",
        "the stream that is meant"
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
        "seconds to wait for what is under way at the end"
    )
    private static let history = Setting<String?>.text(
        "history",
        "DIR",
        "keep histories and folded states in this fresh folder, for `reel check`"
    )
    private static let expect = Setting<[String]>.texts(
        "expect",
        "METRIC<BOUND",
        "such as p99<25ms, delivery.p99.9<=1s, cold.max<2s, pause.p99<2s, acked/s>=950"
    )
    private static let json = CommonSettings.json
    private static let html = Setting<String?>.text("html", "FILE", "write the report as one page, with plots")
}

/// The view of a running load on a terminal, drawn over itself.
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

    /// The cursor goes up, and all below it is empty.
    func clear() {
        try? console.command("\u{1B}[H\u{1B}[J")
    }
}

/// Says once, while the load runs, at which gateways nobody gets in.
private final class ClosedWarning: Sendable {
    private let console: Console
    private let isSaid = Atomic<Bool>(false)

    init(_ console: Console) {
        self.console = console
    }

    func look(at progress: LoadProgress) {
        guard !progress.closed.isEmpty, !isSaid.exchange(true, ordering: .relaxed) else { return }
        let closed = progress.closed.joined(separator: ", ")
        console.note("reel: warning: nobody gets in at \(closed); the others take all clients")
    }
}
