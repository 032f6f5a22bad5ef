/// A parsed command line.
enum Request: Sendable {
    case run(Command, Options)
    /// Show the list of these commands: all commands, or those that begin with one word.
    case overview([Command])
    /// Show the help of one command.
    case help(Command)
}

/// Parses a command line by the table of commands. Pure: the environment is a value.
struct ArgumentParser: Sendable {
    let commands: [Command]
    let environment: [String: String]

    /// Parses `words`, the command line without the name of the program.
    ///
    /// - Throws: a `CommandError` with exit code 2 if a command, setting, value or operand is wrong.
    func request(_ words: [String]) throws(CommandError) -> Request {
        guard let first = words.first, !isHelp(first) else { return .overview(commands) }
        if first == "--version" { return try request(["version"] + words.dropFirst()) }
        if words.count == 2, isHelp(words[1]), let group = group(first) { return .overview(group) }
        let command = try command(named: words)
        let rest = Array(words.dropFirst(command.words.count))
        let beforeDashes = rest.prefix { $0 != "--" }
        if beforeDashes.contains(where: isHelp) { return .help(command) }
        return .run(command, try options(of: command, rest))
    }

    private func isHelp(_ word: String) -> Bool { word == "--help" || word == "-h" }

    /// Returns the commands of two words whose first word is `word`; nil if there are none.
    func group(_ word: String) -> [Command]? {
        let group = commands.filter { $0.words.count > 1 && $0.words.first == word }
        return group.isEmpty ? nil : group
    }

    /// Returns the command that `words` begin with. Its name has one word, or two such as `topic create`.
    func command(named words: [String]) throws(CommandError) -> Command {
        if let command = commands.first(where: { words.starts(with: $0.words) }) { return command }
        let group = words.first.flatMap(group) ?? []
        if !group.isEmpty, words.count == 1 || words[1].hasPrefix("-") {
            let second = group.compactMap(\.words.last).joined(separator: ", ")
            throw CommandError(.usage, "`reel \(words[0])` needs one more word: \(second); `reel help` lists commands")
        }
        let name = words.prefix(group.isEmpty ? 1 : 2).joined(separator: " ")
        let names = group.isEmpty ? commands.compactMap(\.words.first) : group.map(\.name)
        let near = nearest(to: name, among: names).map { "; did you mean `\($0)`?" } ?? ";"
        throw CommandError(.usage, "there is no command `\(name)`\(near) `reel help` lists commands")
    }

    /// Returns a warning for each variable that begins with `REEL_` and is not a setting.
    func warnings() -> [String] {
        let settings = Set(commands.flatMap { $0.members.map(\.variable) })
        return environment.keys.filter { $0.hasPrefix("REEL_") }.sorted().compactMap { variable in
            if settings.contains(variable) || Self.otherVariables.contains(variable) { return nil }
            let near = nearest(to: variable, among: settings.sorted()).map { ", did you mean \($0)?" } ?? ""
            return "the variable \(variable) is not a setting of reel\(near)"
        }
    }

    /// Variables that only the tests read.
    private static let otherVariables: Set<String> = [
        "REEL_EFFORT", "REEL_KAFKA", "REEL_SEED", "REEL_TRACES",
    ]

    private func options(of command: Command, _ words: [String]) throws(CommandError) -> Options {
        var given: [String: [String]] = [:]
        var operands: [String] = []
        var rest = words[...]
        while let word = rest.popFirst() {
            if word == "--" {
                operands += rest
                break
            }
            guard word.hasPrefix("--") else {
                operands.append(word)
                continue
            }
            let parts = word.dropFirst(2).split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            let setting = try setting(named: String(parts[0]), of: command)
            if given[setting.name] != nil, !setting.repeats {
                throw usage(command, "--\(setting.name) is given twice")
            }
            if setting.valueName == nil {
                guard parts.count == 1 else { throw usage(command, "--\(setting.name) takes no value") }
                given[setting.name] = ["1"]
            } else if parts.count == 2 {
                given[setting.name, default: []].append(String(parts[1]))
            } else if let next = rest.first, !next.hasPrefix("--") {
                given[setting.name, default: []].append(next)
                rest.removeFirst()
            } else {
                throw usage(command, "--\(setting.name) needs a value: \(setting.expected)")
            }
        }
        try check(operands, of: command)
        return Options(values: try values(of: command, given), operands: operands)
    }

    private func setting(named name: String, of command: Command) throws(CommandError) -> any AnySetting {
        let members = command.members
        if let setting = members.first(where: { $0.name == name }) { return setting }
        let near = nearest(to: name, among: members.map(\.name)).map { ", did you mean --\($0)?" } ?? ""
        throw usage(command, "`reel \(command.name)` has no --\(name)\(near)")
    }

    private func values(
        of command: Command,
        _ given: [String: [String]]
    ) throws(CommandError) -> [String: any Sendable] {
        var values: [String: any Sendable] = [:]
        for setting in command.members {
            let texts: [String]
            let spelling: String
            if let words = given[setting.name] {
                (texts, spelling) = (words, "--" + setting.name)
            } else if let text = environment[setting.variable] {
                texts = setting.repeats ? text.split(separator: ",").map(String.init) : [text]
                spelling = setting.variable
                if text.isEmpty, texts.isEmpty || setting.value(of: texts) == nil {
                    let expected = "expected is \(setting.expected): give it a value, or unset it"
                    throw usage(command, "\(spelling) is set, but empty; \(expected)")
                }
            } else {
                continue
            }
            guard let value = setting.value(of: texts) else {
                throw usage(command, "\(spelling) \(setting.complaint(about: texts))")
            }
            values[setting.name] = value
        }
        return values
    }

    private func check(_ operands: [String], of command: Command) throws(CommandError) {
        let countMin = command.operands.count { $0.count == .one || $0.count == .several }
        if operands.count < countMin {
            throw usage(command, "\(command.operands[operands.count].name) is missing")
        }
        if operands.count > command.operands.count,
            !command.operands.contains(where: { $0.count == .several || $0.count == .any })
        {
            throw usage(command, "`\(operands[command.operands.count])` is one operand too many")
        }
    }

    private func usage(_ command: Command, _ message: String) -> CommandError {
        CommandError(.usage, message, usage: "usage: \(command.usage); see `reel \(command.name) --help`")
    }
}

/// Returns the candidate with the smallest edit distance to `word`; nil if no candidate is near.
///
/// A candidate is near if at most two letters differ (a swap of two letters counts as two), or at most a third of the
/// letters of `word`.
func nearest(to word: String, among candidates: [String]) -> String? {
    nearestNames(to: word, among: candidates).first
}

/// Returns all candidates that are near `word`, the nearest first.
func nearestNames(to word: String, among candidates: [String]) -> [String] {
    candidates.map { (name: $0, distance: distance(Array(word.utf8), Array($0.utf8))) }
        .filter { $0.distance <= max(2, word.utf8.count / 3) }
        .enumerated()
        .sorted { ($0.element.distance, $0.offset) < ($1.element.distance, $1.offset) }
        .map(\.element.name)
}

/// Returns the Levenshtein distance: the number of bytes to insert, remove or replace.
private func distance(_ a: [UInt8], _ b: [UInt8]) -> Int {
    var row = Array(0...b.count)
    for (i, x) in a.enumerated() {
        var diagonal = row[0]
        row[0] = i + 1
        for (j, y) in b.enumerated() {
            let changed = diagonal + (x == y ? 0 : 1)
            diagonal = row[j + 1]
            row[j + 1] = min(changed, row[j] + 1, diagonal + 1)
        }
    }
    return row[b.count]
}
