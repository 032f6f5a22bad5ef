import ReelClient
import ReelCore
import ReelLab

extension Command {
    /// `reel replay`: recorded editing sessions, to check the merge of texts and to measure its speed.
    static let replay = Command(
        "replay",
        "replay recorded editing sessions and check that the final text is that of the authors' editors",
        about: """
            Reads sessions in the published format of `editing-traces` (.json or .json.gz), sequential or concurrent.
            Each author becomes a site, each edit an event with a splice. The parents of an edit become the base of its
            event. Prints the number of splices a second, and whether the final text is right. If it is not, the command
            prints where the texts first differ, and the exit code is 1.

            Without --url the fold runs in this process. With --url the events are published through nodes, into a new
            stream; each author uses another node if there are enough. With --devices each author is a client of the
            SDK: on a gateway in this process, or on the nodes at --url. --cuts cuts the connections of random devices
            before random edits. The devices connect again and send what was lost.

            A session has at most \(EditingSession.authorsMax) authors and \(EditingSession.editsMax) edits. Its edits
            must have one order in which each author knows a beginning and the own edits, as with one server.
            """,
        operands: [Operand("FILE", .several)],
        settings: NodeArguments.all + [devices, cuts, CommonSettings.seed, CommonSettings.json],
        examples: [
            Example("reel replay friendsforever.json.gz seph-blog1.json.gz", "with the fold only"),
            Example(
                "reel replay friendsforever.json.gz --url http://127.0.0.1:7350 --url http://127.0.0.1:7351",
                "two authors, each through a separate gateway"
            ),
            Example(
                "reel replay friendsforever.json.gz --devices --cuts 50 --seed 7",
                "a device for each author; fifty connections are cut, before the same edits in each run"
            ),
        ]
    ) { options, console in
        guard options[devices] || options[cuts] == 0 else {
            throw CommandError(.usage, "--cuts cuts the connections of devices; add --devices")
        }
        var code = ExitCode.done
        for file in options.operands {
            let bytes = try InputFile.read(file)
            let session: EditingSession
            do throws(ReelError) {
                session = try EditingSession(file: bytes)
            } catch {
                throw CommandError(.badData, "`\(file)`: \(error.message)")
            }
            let progress = ReplayProgress(file, edits: session.edits.count, console)
            let result = ReplayResult(file, session, try await replay(session, options, console, progress))
            try options[CommonSettings.json] ? console.write(result.json) : console.print(result.text)
            try console.flush()
            if !result.isRight { code = .failed }
        }
        return code
    }

    /// Replays a session by the fold, nodes or devices, as the options say.
    private static func replay(
        _ session: EditingSession,
        _ options: Options,
        _ console: Console,
        _ progress: ReplayProgress
    ) async throws -> ReplayRun {
        if options[devices] { return try await replayByDevices(session, options, console, progress) }
        var run = ReplayRun()
        if options[NodeArguments.url].isEmpty {
            let folded = session.folded { progress.show($0) }
            (run.durationNs, run.fault) = (folded.durationNs, folded.difference?.description)
            if let refused = folded.refused { run.note("edit \(refused.edit) is \(refused.outcome)") }
        } else {
            run.way = .nodes
            var replay = try await NodeReplay(session, through: try NodeArguments.addresses(options))
            let (durationNs, difference) = try await replay.run { progress.show($0) }
            (run.durationNs, run.fault) = (durationNs, difference?.description)
        }
        return run
    }

    private static func replayByDevices(
        _ session: EditingSession,
        _ options: Options,
        _ console: Console,
        _ progress: ReplayProgress
    ) async throws -> ReplayRun {
        let own = options[NodeArguments.url].isEmpty ? try ReplayNode() : nil
        let target: DeviceReplay.Target
        if let own {
            // It has no snapshot node, and a log of its own.
            target = DeviceReplay.Target(nodes: [own.url], start: .beginning)
        } else {
            target = DeviceReplay.Target(
                nodes: try NodeArguments.addresses(options).map(\.description),
                start: .snapshot,
                token: options[NodeArguments.token],
                authorities: options[NodeArguments.authorities]
            )
        }
        let seed = options[CommonSettings.seed] ?? Int.random(in: 0...Int(Int32.max))
        if options[cuts] > 0 { console.note("seed \(seed)") }
        let replay = DeviceReplay(session, target, cuts: options[cuts], seed: UInt64(seed))
        var run = ReplayRun(way: .devices)
        do {
            let result = try await replay.run { progress.show($0) }
            (run.durationNs, run.events, run.cuts) = (result.durationNs, Int(result.events), result.cuts)
            if let wrong = result.wrong { run.fault = "device \(wrong.author): \(wrong.difference)" }
            if !result.hasOneDigest { run.note("the devices have different digests") }
        } catch let refusal as DeviceReplay.Refusal {
            await own?.end()
            throw CommandError(.failed, "`\(progress.file)`: \(refusal)")
        } catch {
            await own?.end()
            throw error
        }
        await own?.end()
        return run
    }

    private static let devices = Setting<Bool>.flag(
        "devices",
        "replay by clients of the SDK, one for each author; without --url on a gateway in this process"
    )
    private static let cuts = Setting<Int>.number(
        "cuts",
        "N",
        0...100_000,
        default: 0,
        "with --devices: number of connections to cut, at random edits"
    )
}

/// A replay of one session that has ended.
private struct ReplayRun {
    /// The program parts that the events go through.
    enum Way: String {
        case fold, nodes, devices
    }

    var way = Way.fold
    var durationNs: Int64 = 0
    /// The number of events in the stream; nil: one for each edit.
    var events: Int?
    var cuts = 0
    /// The difference between the final text and the recorded one; nil: the text is right.
    var fault: String?

    /// Adds a further fault.
    mutating func note(_ text: String) {
        fault = fault.map { "\($0); \(text)" } ?? text
    }
}

/// Prints the progress of a long replay to standard error, at most once every five seconds.
private final class ReplayProgress {
    let file: String
    private let edits: Int
    private let console: Console
    private var printedAt = ContinuousClock.now

    init(_ file: String, edits: Int, _ console: Console) {
        (self.file, self.edits, self.console) = (file, edits, console)
    }

    /// Notes that this number of edits is done.
    func show(_ done: Int) {
        guard ContinuousClock.now - printedAt > .seconds(5) else { return }
        printedAt = ContinuousClock.now
        console.note("\(file): \(done) of \(edits) edits")
    }
}

/// The result of one session.
private struct ReplayResult {
    private let file: String
    private let session: EditingSession
    private let run: ReplayRun
    private let durationNs: Int64

    init(_ file: String, _ session: EditingSession, _ run: ReplayRun) {
        (self.file, self.session, self.run) = (file, session, run)
        durationNs = max(run.durationNs, 1)
    }

    var isRight: Bool { run.fault == nil }

    private var splicesPerSecond: Int { Int(Double(session.patchCount) * 1e9 / Double(durationNs)) }

    var text: String {
        let authors = "\(session.authors) author\(session.authors == 1 ? "" : "s")"
        let events = run.events.map { ", \($0) events" } ?? ""
        let cuts = run.cuts > 0 ? ", \(run.cuts) cuts" : ""
        return "\(file): \(authors), \(session.edits.count) edits, \(session.patchCount) splices\(events)\(cuts) in "
            + "\(durationNs / 1_000_000) ms, \(splicesPerSecond) splices/s, the final text is "
            + (run.fault.map { "WRONG: \($0)" } ?? "right")
    }

    /// The result as a line of JSON.
    var json: [UInt8] {
        var line = JSONObjectWriter()
        line.member("file", file)
        line.member("way", run.way.rawValue)
        line.member("authors", session.authors)
        line.member("edits", session.edits.count)
        line.member("splices", session.patchCount)
        if let events = run.events { line.member("events", events) }
        line.member("cuts", run.cuts)
        line.member("duration_ms", durationNs / 1_000_000)
        line.member("splices_per_s", splicesPerSecond)
        line.member("right", isRight)
        if let fault = run.fault { line.member("fault", fault) }
        return line.finishLine()
    }
}
