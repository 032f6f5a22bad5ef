/// One command of `reel`: its name, help, operands, settings and code.
///
/// A new command is one file in `Commands/` with an `extension Command { static let … }`, and its name in
/// `CommandTable.all`. The parser, the help, docs/reference/cli.md and the variables are derived from it.
struct Command: Sendable {
    /// The words after `reel`: one word, or two as in `topic create`.
    let name: String
    /// A line for the list of commands, without a full stop.
    let summary: String
    /// The description in the help: sentences, wrapped by hand.
    let about: String
    let operands: [Operand]
    let settings: [any AnySetting]
    /// The names of the settings that must be given.
    let required: Set<String>
    let examples: [Example]
    let run: @Sendable (Options, Console) async throws -> ExitCode

    init(
        _ name: String,
        _ summary: String,
        about: String,
        operands: [Operand] = [],
        settings: [any AnySetting] = [],
        required: [any AnySetting] = [],
        examples: [Example],
        run: @escaping @Sendable (Options, Console) async throws -> ExitCode
    ) {
        self.name = name
        self.summary = summary
        self.about = about
        self.operands = operands
        self.settings = settings
        self.required = Set(required.map(\.name))
        self.examples = examples
        self.run = run
    }

    /// The words of the name.
    var words: [String] { name.split(separator: " ").map(String.init) }

    /// All settings, with the members of families.
    var members: [any AnySetting] { settings.flatMap(\.members) }

    /// The usage line, such as `reel fold [FILE] [settings]`.
    var usage: String {
        (["reel", name] + operands.map(\.usage) + (settings.isEmpty ? [] : ["[settings]"])).joined(separator: " ")
    }
}

/// A positional argument of a command.
struct Operand: Sendable {
    /// The number of values: one, at most one, at least one, any number.
    enum Count: Sendable { case one, optional, several, any }
    let name: String
    let count: Count

    init(_ name: String, _ count: Count = .one) {
        self.name = name
        self.count = count
    }

    var usage: String {
        switch count {
        case .one: name
        case .optional: "[\(name)]"
        case .several: "\(name)…"
        case .any: "[\(name)…]"
        }
    }
}

/// An example of a command line (`line`) and its explanation (`says`).
struct Example: Sendable {
    let line: String
    let says: String

    init(_ line: String, _ says: String) {
        self.line = line
        self.says = says
    }
}
