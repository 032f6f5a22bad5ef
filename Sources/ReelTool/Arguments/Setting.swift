import ReelCore

/// One setting of a command: one name in two spellings, `--listen` and `REEL_LISTEN`.
///
/// The parser, the help, docs/reference/cli.md and the reader of the environment use these properties.
protocol AnySetting: Sendable {
    /// The name on the command line, without the dashes.
    var name: String { get }
    /// The placeholder of the value in the help, as in `--listen HOST:PORT`; nil for a flag, which has no value.
    var valueName: String? { get }
    /// The default as the help shows it; nil if there is none to show.
    var fallbackText: String? { get }
    /// True if the setting can be given more than once.
    var repeats: Bool { get }
    /// The help: one sentence, without a full stop.
    var help: String { get }
    /// The values that are allowed, for the error message.
    var expected: String { get }
    /// Parses `texts`, the given values in their order; nil if they are not allowed.
    func value(of texts: [String]) -> (any Sendable)?
    /// Returns what is wrong with `texts`. The text follows the name of the setting in a message.
    func complaint(about texts: [String]) -> String
    /// The settings that this one consists of: itself, or the members of a family, which has one row in the help.
    var members: [any AnySetting] { get }
}

extension AnySetting {
    /// The environment variable that is used if the setting is not on the command line.
    var variable: String {
        "REEL_" + name.uppercased().map { $0 == "-" || $0 == "." ? "_" : String($0) }.joined()
    }

    /// The setting as the help shows it, such as `--listen HOST:PORT`.
    var usage: String {
        "--" + name + (valueName.map { " " + $0 } ?? "")
    }

    func complaint(about texts: [String]) -> String {
        "is \(texts.map { "`\($0)`" }.joined(separator: ", ")); expected is \(expected)"
    }

    var members: [any AnySetting] { [self] }
}

/// A setting whose value has the type `Value`.
struct Setting<Value: Sendable>: AnySetting {
    let name: String
    let valueName: String?
    let fallback: Value
    let fallbackText: String?
    let repeats: Bool
    let expected: String
    let help: String
    private let read: @Sendable ([String]) -> Value?

    private init(
        _ name: String,
        _ valueName: String?,
        fallback: Value,
        fallbackText: String?,
        repeats: Bool = false,
        expected: String,
        help: String,
        read: @escaping @Sendable ([String]) -> Value?
    ) {
        self.name = name
        self.valueName = valueName
        self.fallback = fallback
        self.fallbackText = fallbackText
        self.repeats = repeats
        self.expected = expected
        self.help = help
        self.read = read
    }

    func value(of texts: [String]) -> (any Sendable)? { read(texts) }

    /// Returns the same setting with another help, for a command that uses it in another way. `showsDefault`: true if
    /// the default is valid for that command.
    func saying(_ help: String, showsDefault: Bool = true) -> Setting {
        Setting(
            name,
            valueName,
            fallback: fallback,
            fallbackText: showsDefault ? fallbackText : nil,
            repeats: repeats,
            expected: expected,
            help: help,
            read: read
        )
    }
}

extension Setting<Bool> {
    /// A switch that is off by default. In the environment, it is 1 or true, 0 or false.
    static func flag(_ name: String, _ help: String) -> Setting {
        Setting(name, nil, fallback: false, fallbackText: nil, expected: "1, true, 0 or false", help: help) { texts in
            switch texts.last {
            case "1", "true": true
            case "0", "false": false
            default: nil
            }
        }
    }
}

extension Setting where Value: Equatable {
    /// A choice between `words`. `text` converts a value to the word on the command line.
    static func word(
        _ name: String,
        _ valueName: String,
        default fallback: Value,
        _ words: [Value],
        _ help: String,
        text: @escaping @Sendable (Value) -> String
    ) -> Setting {
        Setting(
            name,
            valueName,
            fallback: fallback,
            fallbackText: text(fallback),
            expected: words.map(text).joined(separator: ", "),
            help: help
        ) { texts in words.first { text($0) == texts.last } }
    }
}

extension Setting<String> {
    /// A text with a default.
    static func text(_ name: String, _ valueName: String, default fallback: String, _ help: String) -> Setting {
        Setting(
            name,
            valueName,
            fallback: fallback,
            fallbackText: fallback,
            expected: valueName,
            help: help
        ) { $0.last.flatMap { $0.isEmpty ? nil : $0 } }
    }
}

extension Setting<String?> {
    /// A text that can be absent. The help shows `otherwise` as the default.
    static func text(
        _ name: String,
        _ valueName: String,
        otherwise: String? = nil,
        _ help: String
    ) -> Setting {
        Setting(name, valueName, fallback: nil, fallbackText: otherwise, expected: valueName, help: help) {
            $0.last.flatMap { $0.isEmpty ? nil : .some($0) }
        }
    }
}

extension Setting<Epoch?> {
    /// An epoch that can be absent.
    static func epoch(_ name: String, _ help: String) -> Setting {
        Setting(name, "HEX", fallback: nil, fallbackText: nil, expected: "16 lower-case hex digits", help: help) {
            $0.last.flatMap { Epoch($0) }.map { .some($0) }
        }
    }
}

extension Setting<[String]> {
    /// A list of texts, one for each use of the setting. The environment variable separates them by commas.
    static func texts(_ name: String, _ valueName: String, _ help: String) -> Setting {
        Setting(
            name,
            valueName,
            fallback: [],
            fallbackText: nil,
            repeats: true,
            expected: valueName,
            help: help
        ) { $0.contains("") ? nil : $0 }
    }
}

extension Setting<Int> {
    /// A whole number with bounds and a default.
    static func number(
        _ name: String,
        _ valueName: String,
        _ bounds: ClosedRange<Int>,
        default fallback: Int,
        _ help: String
    ) -> Setting {
        Setting(
            name,
            valueName,
            fallback: fallback,
            fallbackText: String(fallback),
            expected: expectation(bounds),
            help: help
        ) { wholeNumber($0, in: bounds) }
    }
}

extension Setting<Int?> {
    /// A whole number with bounds that can be absent.
    static func number(
        _ name: String,
        _ valueName: String,
        _ bounds: ClosedRange<Int>,
        _ help: String
    ) -> Setting {
        Setting(
            name,
            valueName,
            fallback: nil,
            fallbackText: nil,
            expected: expectation(bounds),
            help: help
        ) { wholeNumber($0, in: bounds).map { .some($0) } }
    }
}

private func expectation(_ bounds: ClosedRange<Int>) -> String {
    bounds.upperBound == .max
        ? "a whole number from \(bounds.lowerBound) on"
        : "a whole number from \(bounds.lowerBound) to \(bounds.upperBound)"
}

private func wholeNumber(_ texts: [String], in bounds: ClosedRange<Int>) -> Int? {
    texts.last.flatMap { Int($0) }.flatMap { bounds.contains($0) ? $0 : nil }
}
