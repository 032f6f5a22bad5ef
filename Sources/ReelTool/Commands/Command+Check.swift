import ReelCheck

extension Command {
    /// `reel check`: the checker.
    static let check = Command(
        "check",
        "check from histories and a dump of the log that nothing was lost, doubled, reordered or skipped",
        about: """
            Reads a folder: the histories (see docs/reference/history.md), the dumps of the log named log….jsonl, from
            `reel dump` or `kcat -C -e -J`, and the snapshots. The checker shares no code with the product. The verdict
            is valid (exit code 0), invalid with the lines that prove it (4), or unknown if there is not enough
            evidence (5).
            """,
        operands: [Operand("DIR")],
        settings: [dumps],
        examples: [
            Example("reel dump > run-1/log.jsonl && reel check run-1", "after `reel load --history run-1`"),
            Example(
                "reel check run-1 --dump topic.jsonl",
                "with a dump by another program: kcat -b HOST -t reel.EPOCH -C -e -J"
            ),
        ]
    ) { options, console in
        let run: RunCheck
        do throws(Fault) {
            run = try RunCheck(folder: options.operands[0], logs: options[dumps])
        } catch {
            throw CommandError(InputFile.code(ofUseless: [options.operands[0]] + options[dumps]), error.reason)
        }
        let verdict = await run.verdict()
        try console.print(page: verdict.text)
        switch verdict.word {
        case .valid: return .done
        case .invalid: return .badData
        case .unknown: return .unknown
        }
    }

    private static let dumps = Setting<[String]>.texts("dump", "FILE", "dump of the log in another place")
}
