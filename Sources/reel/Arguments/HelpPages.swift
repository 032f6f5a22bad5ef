/// The help, as text for a terminal and as the page docs/reference/cli.md, both from the table of commands.
struct HelpPages: Sendable {
    let commands: [Command]

    /// What `reel` alone says.
    func overview() -> String {
        let width = commands.map(\.name.count).max() ?? 0
        let rows = commands.map { "  \(padded($0.name, width))  \($0.summary)" }
        return """
            Reel keeps the same data on many devices: events on a totally ordered stream.

            usage: reel COMMAND [settings]

            \(rows.joined(separator: "\n"))

            `reel help COMMAND` shows the settings and examples of one. A setting has two spellings: --listen on
            the command line, REEL_LISTEN in the environment.
            """
    }

    /// What `reel help COMMAND` says.
    func page(of command: Command) -> String {
        var paragraphs = [
            "reel \(command.name): \(command.summary)", "usage: \(command.usage)", command.about,
        ]
        if !command.settings.isEmpty {
            let width = command.settings.map(\.usage.count).max() ?? 0
            let rows = command.settings.map { "  \(padded($0.usage, width))  \($0.help)\(notes(on: $0, of: command))" }
            paragraphs.append("settings:\n" + rows.joined(separator: "\n"))
        }
        let examples = command.examples.map { "  \($0.line)\n      \($0.says)" }
        paragraphs.append("examples:\n" + examples.joined(separator: "\n"))
        return paragraphs.joined(separator: "\n\n")
    }

    /// docs/reference/cli.md.
    func markdown() -> String {
        let index = commands.map { command in
            "| [`\(command.name)`](#reel-\(command.words.joined(separator: "-"))) | \(command.summary) |"
        }
        let codes = ExitCode.allCases.map { "| \($0.rawValue) | \($0.meaning) |" }
        return """
            # The command line

            This page is made by `reel help --markdown` from the table that also makes the parser and the help; a test
            holds it up to date.

            | command | what it does |
            | --- | --- |
            \(index.joined(separator: "\n"))

            A setting has one name and two spellings: `--listen` on the command line, `REEL_LISTEN` in the environment.
            The command line wins. An unknown setting is an error that names the nearest; an unknown `REEL_…` variable
            is a warning, and one that is set but empty is an error, as `--name ""` is. `--name VALUE` and
            `--name=VALUE` are the same, and `--` ends the settings.

            | exit code | meaning |
            | --- | --- |
            \(codes.joined(separator: "\n"))

            \(commands.map(section).joined(separator: "\n\n"))

            """
    }

    private func section(of command: Command) -> String {
        var paragraphs = ["## reel \(command.name)", "`\(command.usage)`", command.about]
        if !command.settings.isEmpty {
            let rows = command.settings.map { setting in
                "| `\(setting.usage)` | `\(setting.variable)` | \(setting.help)\(notes(on: setting, of: command)) |"
            }
            let head = ["| setting | variable | what it says |", "| --- | --- | --- |"]
            paragraphs.append((head + rows).joined(separator: "\n"))
        }
        let examples = command.examples.flatMap { ["# " + $0.says, $0.line] }
        paragraphs.append((["```sh"] + examples + ["```"]).joined(separator: "\n"))
        return paragraphs.joined(separator: "\n\n")
    }

    private func notes(on setting: any AnySetting, of command: Command) -> String {
        var notes = command.required.contains(setting.name) ? ["required"] : []
        if setting.repeats { notes.append("repeatable") }
        if notes.first != "required", let text = setting.fallbackText { notes.append("default \(text)") }
        return notes.isEmpty ? "" : " (\(notes.joined(separator: ", ")))"
    }

    private func padded(_ text: String, _ width: Int) -> String {
        text + String(repeating: " ", count: max(0, width - text.count))
    }
}
