import ReelCore
import ReelLab

extension Command {
    /// `reel replay`: recorded editing sessions, to check the merge of texts and to measure its speed.
    static let replay = Command(
        "replay",
        "replay recorded editing sessions and check that the final text is that of the authors' editors",
        about: """
            Reads sessions of one or two authors in the published format of `editing-traces` (.json or .json.gz). Each
            author becomes a site, each edit an event with a splice. Prints the number of splices a second, and whether
            the final text is right; the exit code is 1 if it is not. Without --url the fold runs in this process. With
            --url the events are published through nodes, into a new stream; the second author uses the second node.
            """,
        operands: [Operand("FILE", .several)],
        settings: NodeArguments.all + [CommonSettings.json],
        examples: [
            Example("reel replay friendsforever.json.gz seph-blog1.json.gz", "with the fold only"),
            Example(
                "reel replay friendsforever.json.gz --url http://127.0.0.1:7350 --url http://127.0.0.1:7351",
                "two authors, each through a separate gateway"
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

/// The result of one session.
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
            + "the final text is \(isRight ? "right" : "WRONG")"
    }

    /// The result as a line of JSON.
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
