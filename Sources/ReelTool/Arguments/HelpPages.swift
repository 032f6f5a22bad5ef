/// The help: text for a terminal and the page docs/reference/cli.md, both made from the table of commands.
struct HelpPages: Sendable {
    let commands: [Command]

    /// Returns the output of `reel` without a command.
    func overview() -> String {
        let width = commands.map(\.name.count).max() ?? 0
        let rows = commands.map { "  \(padded($0.name, width))  \($0.summary)" }
        return """
            Reel keeps the same data on many devices: events in a totally ordered log.

            usage: reel COMMAND [settings]

            \(rows.joined(separator: "\n"))

            `reel help COMMAND` shows the settings and examples of a command. A setting has two spellings: --listen
            on the command line, REEL_LISTEN in the environment.
            """
    }

    /// Returns the output of `reel help COMMAND`.
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

    /// Returns the page docs/reference/cli.md.
    func markdown() -> String {
        let index = commands.map { command in
            "| [`\(command.name)`](#reel-\(command.words.joined(separator: "-"))) | \(command.summary) |"
        }
        let codes = ExitCode.allCases.map { "| \($0.rawValue) | \($0.meaning) |" }
        return """
            # The command line

            This page lists all commands and settings. `reel help --markdown` generates it from the table of the parser
            and the help; a test checks that it is up to date. Terms: [glossary](../glossary.md).

            | command | meaning |
            | --- | --- |
            \(index.joined(separator: "\n"))

            A setting has one name and two spellings: `--listen` on the command line, `REEL_LISTEN` in the environment.
            The command line takes precedence. An unknown setting is an error, and the message suggests the nearest
            name. An unknown `REEL_…` variable is a warning. An empty value is an error, also in a variable.
            `--name VALUE` and `--name=VALUE` are the same. `--` ends the settings.

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
            let head = ["| setting | variable | meaning |", "| --- | --- | --- |"]
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
