import ReelCore
import ReelLab

extension Command {
    /// Recorded editing sessions, as a check of the splice rule and of its speed.
    static let replay = Command(
        "replay",
        "play recorded editing sessions and check that the text ends as it did in the authors' editors",
        about: """
            Reads sessions of one or two authors in the published form of `editing-traces` (.json or .json.gz). Each
            author becomes a site, each edit an event with a splice. Prints splices a second and whether the end text
            is right; exit code 1 if it is not. Without --url the events go through the fold in this process; with it
            through nodes, into a stream of its own, the second author through the second of several nodes.
            """,
        operands: [Operand("FILE", .several)],
        settings: NodeArguments.all + [CommonSettings.json],
        examples: [
            Example("reel replay friendsforever.json.gz seph-blog1.json.gz", "through the fold alone"),
            Example(
                "reel replay friendsforever.json.gz --url http://127.0.0.1:7350 --url http://127.0.0.1:7351",
                "two authors, each through a gateway of its own"
            ),
        ]
    ) { options, console in
        var code = ExitCode.done
        for file in options.operands {
            let bytes = try InputFile.read(file)
            let session: EditingSession
            do throws(ReelError) {
                session = try EditingSession(file: bytes)
            } catch {
                throw CommandError(.badData, "`\(file)`: \(error.message)")
            }
            let (durationNs, isRight): (Int64, Bool)
            if options[NodeArguments.url].isEmpty {
                let folded = session.folded()
                (durationNs, isRight) = (folded.durationNs, folded.isRight)
            } else {
                var replay = try await NodeReplay(session, through: try NodeArguments.addresses(options))
                (durationNs, isRight) = try await replay.run()
            }
            let result = ReplayResult(file, session, durationNs: durationNs, isRight: isRight)
            try options[CommonSettings.json] ? console.write(result.json) : console.print(result.text)
            if !result.isRight { code = .failed }
        }
        return code
    }
}

/// How a session went.
private struct ReplayResult {
    let file: String
    let edits: Int
    let splices: Int
    let durationNs: Int64
    let isRight: Bool

    init(_ file: String, _ session: EditingSession, durationNs: Int64, isRight: Bool) {
        self.file = file
        edits = session.edits.count
        splices = session.patchCount
        self.durationNs = max(durationNs, 1)
        self.isRight = isRight
    }

    var splicesPerSecond: Int { Int(Double(splices) * 1e9 / Double(durationNs)) }

    var text: String {
        "\(file): \(edits) edits, \(splices) splices in \(durationNs / 1_000_000) ms, \(splicesPerSecond) splices/s, "
            + "the end text is \(isRight ? "right" : "WRONG")"
    }

    /// A line of JSON.
    var json: [UInt8] {
        var line = JSONObjectWriter()
        line.member("file", file)
        line.member("edits", edits)
        line.member("splices", splices)
        line.member("duration_ms", durationNs / 1_000_000)
        line.member("splices_per_s", splicesPerSecond)
        line.member("right", isRight)
        return line.finishLine()
    }
}
