/// One command of `reel`: what it is called, what it takes, what it does.
///
/// A new command is one file in `Commands/` with an `extension Command { static let … }`, and its name in
/// `CommandTable.all`. Parser, help, docs/reference/cli.md and environment follow from that.
struct Command: Sendable {
    /// What is typed behind `reel`: one word, or two as in `topic create`.
    let name: String
    /// One line for the list of commands, without a full stop.
    let summary: String
    /// What a person should know before the first use: sentences, wrapped by hand.
    let about: String
    let operands: [Operand]
    let settings: [any AnySetting]
    /// Those of them that it cannot do without, by name.
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

    /// Every single setting that it takes.
    var members: [any AnySetting] { settings.flatMap(\.members) }

    /// `reel fold [FILE] [settings]`.
    var usage: String {
        (["reel", name] + operands.map(\.usage) + (settings.isEmpty ? [] : ["[settings]"])).joined(separator: " ")
    }
}

/// What a command takes besides settings, by its place.
struct Operand: Sendable {
    /// One, one or none, one or more, any number.
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

/// A line to type, and what it does.
struct Example: Sendable {
    let line: String
    let says: String

    init(_ line: String, _ says: String) {
        self.line = line
        self.says = says
    }
}
