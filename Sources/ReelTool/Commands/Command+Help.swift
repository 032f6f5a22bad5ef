import ReelCore

extension Command {
    /// `reel help`: the help, made from the table of commands.
    static let help = Command(
        "help",
        "show all commands, or one command with its settings and examples",
        about: "`reel COMMAND --help` shows the same.",
        operands: [Operand("COMMAND", .any)],
        settings: [markdown, errors],
        examples: [
            Example("reel help fold", "the page of one command"),
            Example(
                "reel help --markdown > docs/reference/cli.md",
                "all pages, as a page of the documentation"
            ),
        ]
    ) { options, console in
        let pages = HelpPages(commands: CommandTable.all)
        if options[markdown] {
            try console.write(pages.markdown().utf8)
            return .done
        }
        if options[errors] {
            try console.write(ErrorCode.page().utf8)
            return .done
        }
        let parser = ArgumentParser(commands: CommandTable.all, environment: [:])
        if options.operands.count == 1, let group = parser.group(options.operands[0]) {
            try console.print(page: HelpPages(commands: group).overview())
        } else if !options.operands.isEmpty {
            try console.print(page: pages.page(of: try parser.command(named: options.operands)))
        } else {
            try console.print(page: pages.overview())
        }
        return .done
    }

    private static let markdown = Setting<Bool>.flag("markdown", "print the page docs/reference/cli.md")
    private static let errors = Setting<Bool>.flag("errors", "print the page docs/reference/errors.md")
}
